"""The built-in voice: espeak-ng, Mandarin and English, no download, speech within milliseconds.

One thread asks one espeak-ng process for a piece at a time, jobs in turn. The process is the only
thing that runs C code of espeak-ng: when it crashes it is replaced, and only its piece is redone.
"""

import asyncio
import logging
import threading
import time
from collections import deque

import numpy as np

from chattts_api.engine.admission import Admission
from chattts_api.engine.espeak_job import Counters, EspeakJob
from chattts_api.engine.espeak_process import EspeakCrashedError, EspeakProcess
from chattts_api.engine.espeak_sound import at_engine_rate, silence, trimmed
from chattts_api.engine.espeak_text import Piece
from chattts_api.engine.espeak_voice import EspeakVoice, espeak_voice
from chattts_api.engine.stream import JobStream
from chattts_api.errors import (
    EngineFailedError,
    GenerationFailedError,
    ModelLoadingError,
    RequestTimeoutError,
    SetupError,
    SpeechError,
)
from chattts_api.types import SAMPLE_RATE, AudioChunk, EngineStats, Job, Samples, Voice

logger = logging.getLogger(__name__)

CHUNK = SAMPLE_RATE * 3 // 10
IDLE_WAIT_S = 0.5
PAUSED_WAIT_S = 0.02  # a paused job's reader makes no call when it reads
NUM_TRIES = 2


class EspeakEngine:
    """SpeechEngine of the built-in voice. The seed has no effect: it always speaks the same.

    Args:
        max_queue: jobs inside; one more is refused.
        max_queued_s: seconds of speech inside, beyond which a job is refused.
        stall_timeout_s: how long a reader may leave its full buffer alone.
    """

    name = "espeak"

    def __init__(
        self, *, max_queue: int = 64, max_queued_s: float = 600.0, stall_timeout_s: float = 30.0
    ) -> None:
        self._admission = Admission(max_queue, max_queued_s)
        self._stall_timeout_s = stall_timeout_s
        self._process = EspeakProcess()
        self._jobs: deque[EspeakJob] = deque()
        self._count = Counters()
        self._wake = threading.Condition()
        self._is_stopping = False
        self._is_ready = False
        self._beat_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="espeak", daemon=True)

    # ---- the event loop's side

    async def start(self) -> None:
        try:
            await asyncio.to_thread(self._warm_up)
        except EspeakCrashedError as error:
            raise SetupError(
                "CHATTTS_ENGINE: the built-in voice cannot start here. Reinstall it with "
                "pip install --force-reinstall espeakng-loader"
            ) from error
        self._is_ready = True
        self._thread.start()

    async def stop(self) -> None:
        with self._wake:
            self._is_stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._process.close)

    def submit(self, job: Job) -> JobStream:
        if self._is_stopping:
            raise EngineFailedError("The speech engine is not running.", retry_after_s=5)
        if not self._is_ready:
            raise ModelLoadingError("The built-in voice is starting.", retry_after_s=1)
        self._admission.enter(job, retry_after_s=1)
        stream = JobStream(job, self._abort, engine=self.name)
        with self._wake:
            self._jobs.append(EspeakJob(stream, time.monotonic()))
            self._wake.notify()
        return stream

    def stats(self) -> EngineStats:
        jobs, count = list(self._jobs), self._count
        num_waiting = sum(not job.has_begun for job in jobs)
        num_paused = sum(job.is_paused for job in jobs)
        return EngineStats(
            engine=self.name,
            device="cpu",
            dtype="int16",
            is_ready=self._is_ready and not self._is_stopping,
            num_waiting=num_waiting,
            num_running=len(jobs) - num_waiting - num_paused,
            num_paused=num_paused,
            num_slots=1,
            queued_s=self._admission.queued_s,
            num_steps=count.pieces,
            num_rows=count.pieces,
            num_finished=count.finished,
            num_failed=count.failed,
            num_aborted=count.aborted,
            num_retried=count.retried,
            audio_s=count.samples / SAMPLE_RATE,
            last_step_age_s=time.monotonic() - self._beat_s if jobs else 0.0,
        )

    def _warm_up(self) -> None:
        voice = espeak_voice(Voice("warm-up", "warm-up"), speed_token=5)
        for text, language in (("好", "zh"), ("so", "en")):
            self._process.speak(text, language, voice)

    def _abort(self, _stream: JobStream) -> None:
        with self._wake:
            self._wake.notify()

    # ---- the worker's side

    def _run(self) -> None:
        while not self._is_stopping:
            self._beat_s = time.monotonic()
            job = self._next()
            if job is None:
                continue
            try:
                self._speak_piece(job)
            except SpeechError as error:
                self._end(job, error)
            except Exception:
                logger.exception("A job of the built-in voice failed")
                self._end(job, GenerationFailedError("The built-in voice failed. Try again."))
        self._is_ready = False
        for job in tuple(self._jobs):
            self._end(job, EngineFailedError("The speech engine has stopped."))

    def _next(self) -> EspeakJob | None:
        """The job whose turn it is; it goes to the end of the row. None after a wait."""
        self._drop_left()
        with self._wake:
            for _ in range(len(self._jobs)):
                job = self._jobs[0]
                self._jobs.rotate(-1)
                if not job.is_paused:
                    return job
            if not self._is_stopping:
                self._wake.wait(PAUSED_WAIT_S if self._jobs else IDLE_WAIT_S)
        return None

    def _drop_left(self) -> None:
        """End the jobs that nobody reads any more."""
        now = time.monotonic()
        for job in tuple(self._jobs):
            if job.stream.is_aborted:
                self._end(job, None)
            elif job.stalled_s(now) > self._stall_timeout_s:
                self._end(job, RequestTimeoutError("The reader stopped reading."))

    def _speak_piece(self, job: EspeakJob) -> None:
        segment, piece, is_last = job.take()
        sound = self._sound_of(piece, job.voice)
        self._count.pieces += 1
        for start in range(0, len(sound), CHUNK):
            if job.stream.is_aborted:
                return
            samples = sound[start : start + CHUNK]
            is_end = is_last and start + CHUNK >= len(sound)
            job.stream.put(AudioChunk(segment, samples, finish_reason="stop" if is_end else None))
            self._count.samples += len(samples)
        if is_last and not len(sound):
            job.stream.put(AudioChunk(segment, sound, finish_reason="stop"))
        if job.is_done:
            job.stream.finish()
            self._end(job, None)

    def _sound_of(self, piece: Piece, voice: EspeakVoice) -> Samples:
        pause = silence(piece.pause_s)
        if not piece.text:
            return pause
        words = at_engine_rate(
            trimmed(self._spoken(piece, voice), self._process.sample_rate),
            self._process.sample_rate,
        )
        return np.concatenate((words, pause))

    def _spoken(self, piece: Piece, voice: EspeakVoice) -> Samples:
        for _ in range(NUM_TRIES):
            try:
                return self._process.speak(piece.text, piece.language, voice)
            except EspeakCrashedError:
                logger.warning("The built-in voice's process ended; a new one takes its place")
                self._count.retried += 1
        raise GenerationFailedError("The built-in voice cannot speak this text.")

    def _end(self, job: EspeakJob, error: SpeechError | None) -> None:
        with self._wake:
            self._jobs.remove(job)
        self._admission.leave(job.stream.job)
        if error is not None:
            self._count.failed += 1
            job.stream.fail(error)
        elif job.stream.is_aborted:
            self._count.aborted += 1
        else:
            self._count.finished += 1
