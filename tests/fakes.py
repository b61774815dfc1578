"""An engine whose every move a test decides, and a text front end that only splits.

`ScriptedEngine` implements `chattts_api/engine/interface.py` without threads: a job's chunks come
when its script lets them, and what became of each job is on record.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np

from chattts_api.engine.stream import JobStream
from chattts_api.errors import EmptyInputError, OverloadedError
from chattts_api.types import (
    SAMPLE_RATE,
    AudioChunk,
    Dropped,
    EngineStats,
    Job,
    Language,
    Reading,
    Samples,
    Segment,
)

CHUNK_S = 0.1


def tone(seconds: float, hz: float = 220.0) -> Samples:
    """A quiet sine, so that a test can tell sound from silence."""
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return (0.2 * np.sin(2 * np.pi * hz * t)).astype(np.float32)


@dataclass(eq=False)
class ScriptedJob:
    """One job inside the engine: its stream, and the task that plays its script."""

    stream: JobStream
    task: asyncio.Task[None] | None = None
    is_aborted: bool = False
    num_chunks: int = 0


Script = Callable[["ScriptedEngine", ScriptedJob], Awaitable[None]]


async def speak_all(engine: "ScriptedEngine", job: ScriptedJob) -> None:
    """The default script: every segment is `engine.seconds` of tone, in chunks."""
    for index, _ in enumerate(job.stream.job.segments):
        num_chunks = max(1, round(engine.seconds / CHUNK_S))
        for n in range(num_chunks):
            await engine.gate.wait()
            is_last = n == num_chunks - 1
            engine.put(job, index, tone(CHUNK_S), is_last=is_last)
            await asyncio.sleep(engine.pace_s)
    job.stream.finish()


@dataclass(eq=False)
class ScriptedEngine:
    """Plays `script` for every job.

    Attributes:
        gate: the default script waits for it before every chunk; set at first.
        max_jobs: beyond it `submit` raises OverloadedError.
        pace_s: between two chunks.
    """

    script: Script = speak_all
    seconds: float = 0.3
    pace_s: float = 0.0
    max_jobs: int = 64
    name: str = "espeak"
    is_ready: bool = True
    step_age_s: float = 0.0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    jobs: list[ScriptedJob] = field(default_factory=list)
    num_finished: int = 0
    num_failed: int = 0
    num_aborted: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        for job in self.running:
            job.stream.abort()

    @property
    def running(self) -> list[ScriptedJob]:
        return [job for job in self.jobs if job.task is not None and not job.task.done()]

    def submit(self, job: Job) -> JobStream:
        if len(self.running) >= self.max_jobs:
            raise OverloadedError("The server is full. Try again shortly.", retry_after_s=1)
        stream = JobStream(job, self._abort, engine=self.name)
        scripted = ScriptedJob(stream)
        scripted.task = asyncio.get_running_loop().create_task(self._play(scripted))
        self.jobs.append(scripted)
        return stream

    def put(self, job: ScriptedJob, segment: int, samples: Samples, *, is_last: bool) -> None:
        job.num_chunks += 1
        reason = "stop" if is_last else None
        job.stream.put(AudioChunk(segment, samples, num_steps=5, finish_reason=reason))

    def stats(self) -> EngineStats:
        return EngineStats(
            engine=self.name,
            device="cpu",
            dtype="float32",
            is_ready=self.is_ready,
            num_running=len(self.running),
            num_slots=self.max_jobs,
            num_finished=self.num_finished,
            num_failed=self.num_failed,
            num_aborted=self.num_aborted,
            last_step_age_s=self.step_age_s,
        )

    async def _play(self, job: ScriptedJob) -> None:
        try:
            await self.script(self, job)
        except asyncio.CancelledError:
            self.num_aborted += 1
            raise
        except Exception as error:  # noqa: BLE001 - as an engine's thread: errors travel to the waiter
            self.num_failed += 1
            job.stream.fail(error)  # type: ignore[arg-type]
        else:
            self.num_finished += 1

    def _abort(self, stream: JobStream) -> None:
        for job in self.jobs:
            if job.stream is stream and job.task is not None:
                job.is_aborted = True
                job.task.cancel()


class PlainReader:
    """Reads a text as one segment for each sentence; characters beyond the plain are dropped."""

    def read(
        self, text: str, *, lang: Language, normalize: bool, lexicon: dict[str, str]
    ) -> Reading:
        for written, spoken in lexicon.items():
            text = text.replace(written, spoken)
        dropped = tuple(Dropped(i, i + 1, c) for i, c in enumerate(text) if ord(c) > 0xFFFF)
        kept = "".join(c for c in text if ord(c) <= 0xFFFF).strip()
        if not any(c.isalnum() for c in kept):
            raise EmptyInputError("There is nothing to say in this text.", param="input")
        pieces = [p.strip() for p in kept.replace("!", ".").split(".") if p.strip()]
        segments = tuple(Segment(p, p, "en", max_steps=100) for p in pieces)
        return Reading(kept, segments, (), dropped, "en")
