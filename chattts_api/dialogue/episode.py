"""A dialogue as one sound: turns, pauses, music under them, and where each turn stands."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from chattts_api.dialogue.conversation import Begin, Conversation, PlannedTurn, SpokenTurn
from chattts_api.dialogue.music import MusicBed, MusicLevels
from chattts_api.dialogue.script import Turn
from chattts_api.errors import InputTooLongError
from chattts_api.synthesis import Plan
from chattts_api.types import Samples

DEFAULT_GAP_S = 0.4
PlanTurn = Callable[[Turn], Plan]


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Music and how loud it is."""

    music: Samples
    levels: MusicLevels


class Episode:
    """Iterate over it once for the mixed sound."""

    def __init__(
        self,
        begin: Begin,
        turns: Sequence[PlannedTurn],
        background: Background | None = None,
    ) -> None:
        self.conversation = Conversation(begin, turns)
        self._background = background

    @property
    def spoken(self) -> list[SpokenTurn]:
        """The turns whose sound is whole."""
        return self.conversation.spoken

    async def __aiter__(self) -> AsyncGenerator[Samples]:
        music = self._background
        bed = None if music is None else MusicBed(music.music, music.levels)
        async with aclosing(aiter(self.conversation)) as pieces:
            async for samples in pieces:
                mixed = samples if bed is None else bed.push(samples)
                if len(mixed):
                    yield mixed
        if bed is not None:
            yield bed.finish()


def plan_turns(
    turns: Sequence[Turn], plan: PlanTurn, *, gap_s: float = DEFAULT_GAP_S
) -> tuple[PlannedTurn, ...]:
    """Read every turn before the first is spoken, so that a bad one is refused at once.

    Raises:
        InputTooLongError and whatever `plan` raises, with the turn's number in the message.
    """
    planned: list[PlannedTurn] = []
    for number, turn in enumerate(turns, start=1):
        try:
            made = plan(turn)
        except InputTooLongError as error:
            raise InputTooLongError(f"Turn {number}: {error.message}", param="script") from None
        pause_s = gap_s if turn.pause_s is None else turn.pause_s
        planned.append(PlannedTurn(turn.role, turn.text, made, pause_s))
    return tuple(planned)
