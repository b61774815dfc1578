"""Engines made of engines: the built-in voice until the model speaks, and help when it is full."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from chattts_api.engine.interface import SpeechEngine
from chattts_api.engine.stream import JobStream
from chattts_api.errors import EngineFailedError, OverloadedError, SetupError
from chattts_api.types import EngineStats, Job

logger = logging.getLogger(__name__)

Report = Callable[[str, float | None], None]  # words, and 0 to 1 where a download runs


class SwitchingEngine:
    """Speaks with the built-in voice at once, and with the model as soon as that is ready.

    Jobs that the built-in voice has begun end with it; none is lost in the switch.

    Args:
        built_in: speaks first.
        obtain: gets the weights and starts the model's engine, reporting on the way. Where it
            raises SetupError the built-in voice stays, and the error's words are the notice.
        is_held: not ready before the model is.
    """

    def __init__(
        self,
        built_in: SpeechEngine,
        obtain: Callable[[Report], Awaitable[SpeechEngine]],
        *,
        is_held: bool = False,
    ) -> None:
        self._built_in = built_in
        self._obtain = obtain
        self._is_held = is_held
        self._current = built_in
        self._notice = ""
        self._progress: float | None = None
        self._switching: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._current.name

    async def start(self) -> None:
        await self._built_in.start()
        self._switching = asyncio.create_task(self._switch())

    async def stop(self) -> None:
        if self._switching is not None:
            self._switching.cancel()
            await asyncio.wait([self._switching])
        await self._built_in.stop()
        if self._current is not self._built_in:
            await self._current.stop()

    def submit(self, job: Job) -> JobStream:
        return self._current.submit(job)

    def stats(self) -> EngineStats:
        stats = self._current.stats()
        is_ready = stats.is_ready and not (self._is_held and self._current is self._built_in)
        return replace(stats, is_ready=is_ready, notice=self._notice, progress=self._progress)

    async def _switch(self) -> None:
        try:
            self._current = await self._obtain(self._report)
        except SetupError as error:
            self._report(f"{error} Speaking with the built-in voice until then.", None)
            return
        self._notice, self._progress = "", None
        logger.info("ChatTTS is ready: it speaks from now on")

    def _report(self, words: str, progress: float | None) -> None:
        if words != self._notice:
            logger.warning("%s", words)
        self._notice, self._progress = words, progress


class OverflowEngine:
    """Speaks with a second engine what the first one cannot take.

    Args:
        first: asked first, always.
        second: started at the first need; what it says is marked by its name.
    """

    def __init__(self, first: SpeechEngine, second: SpeechEngine) -> None:
        self._first = first
        self._second = second
        self._starting: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._first.name

    async def start(self) -> None:
        await self._first.start()

    async def stop(self) -> None:
        if self._starting is not None:
            await asyncio.wait([self._starting])
            await self._second.stop()
        await self._first.stop()

    def submit(self, job: Job) -> JobStream:
        try:
            return self._first.submit(job)
        except (OverloadedError, EngineFailedError):
            if self._starting is None:
                self._starting = asyncio.create_task(self._second.start())
            if not self._starting.done() or self._starting.exception() is not None:
                raise  # the first refusal is the answer until help has come
            return self._second.submit(job)

    def stats(self) -> EngineStats:
        return self._first.stats()
