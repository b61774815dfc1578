"""Speaks planned turns one after another as one sound, the next ones prepared meanwhile."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from chattts_api.audio.joining import silence
from chattts_api.synthesis import Plan, Speech
from chattts_api.types import SAMPLE_RATE, Samples

Begin = Callable[[Plan], Coroutine[Any, Any, Speech]]
"""Queues a plan; returns at its first sound: `Synthesis.speak`, or a surface's own door to it."""

LOOK_AHEAD: Final = 3  # turns queued at once: enough to fill a batch, few enough to share it


@dataclass(frozen=True, slots=True, eq=False)
class PlannedTurn:
    """A turn that has been read: who speaks, what is written, silence after it."""

    role: str
    text: str
    plan: Plan
    pause_s: float


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """Where a turn stands on the time line; end_s is that of its sound, before the pause."""

    index: int
    role: str
    text: str
    start_s: float
    end_s: float


class Conversation:
    """Iterate over it once for the sound; `spoken` grows as turns end. Leaving early frees rows."""

    def __init__(self, begin: Begin, turns: Sequence[PlannedTurn]) -> None:
        self.turns = tuple(turns)
        self.spoken: list[SpokenTurn] = []
        self.engine = ""
        self.is_cut = False
        self._begin = begin
        self._num_samples = 0
        self._waiting = deque(self.turns)
        self._begun: deque[asyncio.Task[Speech]] = deque()

    @property
    def seconds(self) -> float:
        """Sound handed out so far."""
        return self._num_samples / SAMPLE_RATE

    async def __aiter__(self) -> AsyncGenerator[Samples]:
        try:
            for index, turn in enumerate(self.turns):
                self._look_ahead()
                speech = await self._begun.popleft()
                self.engine = speech.engine
                self._look_ahead()
                start_s = self.seconds
                async with aclosing(aiter(speech)) as pieces:
                    async for samples in pieces:
                        yield self._counted(samples)
                self._note(index, turn, speech, start_s)
                is_last = index == len(self.turns) - 1
                if turn.pause_s > 0 and not is_last:
                    yield self._counted(silence(turn.pause_s))
        finally:
            await self._drop()

    def _look_ahead(self) -> None:
        while self._waiting and len(self._begun) < LOOK_AHEAD:
            turn = self._waiting.popleft()
            self._begun.append(asyncio.ensure_future(self._begin(turn.plan)))

    def _note(self, index: int, turn: PlannedTurn, speech: Speech, start_s: float) -> None:
        self.is_cut |= speech.finish_reason == "length"
        self.spoken.append(SpokenTurn(index, turn.role, turn.text, start_s, self.seconds))

    def _counted(self, samples: Samples) -> Samples:
        self._num_samples += len(samples)
        return samples

    async def _drop(self) -> None:
        for task in self._begun:
            task.cancel()
        for result in await asyncio.gather(*self._begun, return_exceptions=True):
            if isinstance(result, Speech):
                result.abort()
        self._begun.clear()
