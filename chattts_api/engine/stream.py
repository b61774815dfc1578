"""The bridge of one job's sound from an engine's worker thread to the event loop that waits."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Self

from chattts_api.errors import SpeechError
from chattts_api.types import SAMPLE_RATE, AudioChunk, Job


class JobStream:
    """Chunks of one job in the order of its segments, whatever order they were made in.

    The worker calls `put`, `finish` and `fail`; the event loop iterates and may `abort`.
    Iteration ends after `finish`, or raises what `fail` was given. The worker reads
    `buffered_s` to pause a job whose reader is slow: nothing here ever blocks.
    """

    def __init__(
        self, job: Job, on_abort: Callable[["JobStream"], None], *, engine: str = "chattts"
    ) -> None:
        self.job = job
        self.engine = engine
        self._loop = asyncio.get_running_loop()
        self._on_abort = on_abort
        self._lock = threading.Lock()
        self._chunks: list[deque[AudioChunk]] = [deque() for _ in job.segments]
        self._segment = 0
        self._buffered_samples = 0
        self._error: SpeechError | None = None
        self._finished = False
        self._aborted = False
        self._readable = asyncio.Event()

    @property
    def buffered_s(self) -> float:
        """Seconds of sound made and not yet taken."""
        return self._buffered_samples / SAMPLE_RATE

    @property
    def current_segment(self) -> int:
        """The segment the reader is at."""
        return self._segment

    @property
    def has_readable(self) -> bool:
        """Whether the reader could take a chunk now."""
        segment = self._segment
        return segment < len(self._chunks) and bool(self._chunks[segment])

    @property
    def is_aborted(self) -> bool:
        return self._aborted

    def put(self, chunk: AudioChunk) -> None:
        with self._lock:
            self._chunks[chunk.segment].append(chunk)
            self._buffered_samples += len(chunk.samples)
        self._wake()

    def finish(self) -> None:
        self._finished = True
        self._wake()

    def fail(self, error: SpeechError) -> None:
        self._error = error
        self._wake()

    def abort(self) -> None:
        """Stop the work; safe to call at any time and more than once."""
        if self._aborted or self._finished or self._error is not None:
            return
        self._aborted = True
        self._on_abort(self)
        self._wake()

    def _wake(self) -> None:
        # The loop may have been closed while the worker still held this job.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._readable.set)

    def _take(self) -> AudioChunk | None:
        with self._lock:
            if self._segment >= len(self._chunks) or not self._chunks[self._segment]:
                return None
            chunk = self._chunks[self._segment].popleft()
            self._buffered_samples -= len(chunk.samples)
            if chunk.is_last:
                self._segment += 1
            return chunk

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        while True:
            self._readable.clear()
            if (chunk := self._take()) is not None:
                return chunk
            if self._error is not None:
                raise self._error
            if self._finished or self._aborted:
                raise StopAsyncIteration
            await self._readable.wait()
