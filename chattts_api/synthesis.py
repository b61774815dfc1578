"""The product on one screen: a request is read, spoken, joined, stretched and encoded.

request -> plan: Reading and Job -> engine: AudioChunks -> Speech: samples -> bytes
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from chattts_api.audio.encoder import Encoder, open_encoder
from chattts_api.audio.joining import SegmentJoiner
from chattts_api.audio.stretch import TimeStretch
from chattts_api.engine.interface import SpeechEngine
from chattts_api.engine.stream import JobStream
from chattts_api.errors import DeadlineExceededError, GenerationFailedError
from chattts_api.types import (
    SAMPLE_RATE,
    STEP_SAMPLES,
    AudioChunk,
    FinishReason,
    Job,
    Language,
    Reading,
    Samples,
    SpeechRequest,
    Style,
)

SEED_LIMIT = 2**63


class Reader(Protocol):
    """The text front end, as far as synthesis needs it."""

    def read(
        self, text: str, *, lang: Language, normalize: bool, lexicon: dict[str, str]
    ) -> Reading: ...


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A request that has been read and can be spoken."""

    request: SpeechRequest
    reading: Reading
    job: Job


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost: characters the model read, steps it made."""

    input_tokens: int
    output_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Synthesis:
    """Speaks requests with one engine, whatever surface they came by."""

    def __init__(self, reader: Reader, engine: SpeechEngine, *, timeout_s: float) -> None:
        self.reader = reader
        self.engine = engine
        self._timeout_s = timeout_s

    def plan(self, request: SpeechRequest) -> Plan:
        """Read the text. Raises EmptyInputError and the front end's other errors."""
        reading = self.reader.read(
            request.input,
            lang=request.lang,
            normalize=request.normalize,
            lexicon=dict(request.lexicon),
        )
        job = Job(
            request_id=request.request_id,
            segments=reading.segments,
            voice=request.voice,
            sampling=request.sampling,
            style=_styled(request.style, reading),
            seed=secrets.randbelow(SEED_LIMIT) if request.seed is None else request.seed,
        )
        return Plan(request, reading, job)

    async def speak(self, plan: Plan) -> "Speech":
        """Queue a plan; returns once its first sound is there.

        Raises OverloadedError before any work, DeadlineExceededError, and what the engine raises.
        """
        speech = Speech(plan, self.engine.submit(plan.job), timeout_s=self._timeout_s)
        try:
            await speech.begin()
        except BaseException:  # a cancelled caller must not leave its row running
            speech.abort()
            raise
        return speech


class Speech:
    """One request being spoken: iterate over it once, as samples or as bytes.

    Samples are float32 at 24 kHz after pauses and time-stretch. Leaving early is `abort`.
    """

    def __init__(self, plan: Plan, stream: JobStream, *, timeout_s: float) -> None:
        self.plan = plan
        self.engine = stream.engine
        self.finish_reason: FinishReason = "stop"
        self._stream = stream
        self._left_s = timeout_s
        self._joiner = SegmentJoiner(plan.reading.segments)
        self._stretch = TimeStretch(plan.request.speed, SAMPLE_RATE)
        self._first: Samples | None = None
        self._is_over = False
        self._num_samples = 0
        self._num_steps = 0

    @property
    def seed(self) -> int:
        return self.plan.job.seed

    @property
    def reading(self) -> Reading:
        return self.plan.reading

    @property
    def content_type(self) -> str:
        return self.open_encoder().content_type

    @property
    def seconds(self) -> float:
        """Sound handed out so far."""
        return self._num_samples / SAMPLE_RATE

    @property
    def segments_done(self) -> int:
        """Segments whose sound has been handed out whole."""
        return self._stream.current_segment

    @property
    def usage(self) -> Usage:
        return Usage(sum(len(s.text) for s in self.plan.job.segments), self._num_steps)

    def open_encoder(self) -> Encoder:
        request = self.plan.request
        return open_encoder(request.response_format, sample_rate=request.sample_rate)

    async def begin(self) -> None:
        """Wait for the first sound."""
        self._first = await self._next_samples()
        if self._first is None:
            raise GenerationFailedError("No speech came of this text. Try another seed.")

    def abort(self) -> None:
        """Free the engine's rows; safe to call at any time."""
        self._stream.abort()

    async def __aiter__(self) -> AsyncGenerator[Samples]:
        samples = self._first
        try:
            while samples is not None:
                self._num_samples += len(samples)
                yield samples
                samples = await self._next_samples()
        finally:
            self.abort()

    async def encoded(self) -> AsyncGenerator[bytes]:
        """The response body, from one encoder."""
        encoder = self.open_encoder()
        async with aclosing(aiter(self)) as pieces:
            async for samples in pieces:
                if data := encoder.encode(samples):
                    yield data
        if data := encoder.finish():
            yield data

    async def _next_samples(self) -> Samples | None:
        """The next piece of sound that is not empty, or None at the end."""
        while not self._is_over:
            if (chunk := await self._next_chunk()) is None:
                self._is_over = True
                samples = self._stretch.flush()
            else:
                self._note(chunk)
                samples = self._stretch.push(self._joiner.push(chunk))
            if len(samples):
                return samples
        return None

    async def _next_chunk(self) -> AudioChunk | None:
        # The deadline counts the time spent waiting for the engine, not for a slow reader.
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left_s):
                return await anext(self._stream, None)
        except TimeoutError:
            self.abort()
            raise DeadlineExceededError("The speech took too long to make.") from None
        finally:
            self._left_s -= loop.time() - began

    def _note(self, chunk: AudioChunk) -> None:
        self._num_steps += chunk.num_steps or round(len(chunk.samples) / STEP_SAMPLES)
        if chunk.finish_reason == "length":
            self.finish_reason = "length"


def _styled(style: Style, reading: Reading) -> Style:
    """The request's style, with the parameters that stood in its text."""
    marks = reading.marks
    return replace(
        style,
        speed_token=marks.get("speed", style.speed_token),
        oral=marks.get("oral", style.oral),
        laugh=marks.get("laugh", style.laugh),
        break_=marks.get("break", style.break_),
    )
