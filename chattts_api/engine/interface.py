"""What every engine offers: the model's (`engine.py`), the built-in voice's (`espeak.py`).

And what the model's engine asks of the one file that knows the device (`runner.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chattts_api.engine.slots import RowSetup, Slots, SlotTable, StepOutcome
from chattts_api.engine.stream import JobStream
from chattts_api.engine.windows import Window
from chattts_api.types import EngineStats, Job, Samples, Style, Voice


class SpeechEngine(Protocol):
    """Speaks jobs. `submit` and `abort` are called on the event loop and never block it."""

    @property
    def name(self) -> str:
        """chattts, espeak or triton: the value of the header x-engine."""

    async def start(self) -> None:
        """Load and warm up; ready when it returns. Raises SetupError."""

    async def stop(self) -> None:
        """Abort what runs and end the workers."""

    def submit(self, job: Job) -> JobStream:
        """Queue a job. Raises OverloadedError, before any work, when the queue is full."""

    def stats(self) -> EngineStats: ...


@dataclass(frozen=True, slots=True, eq=False)
class PromptText:
    """What a row's prompt is built from.

    `refined` ids, where the refine pass has written them, stand for the text. `raw` is a whole
    prompt as the tokenizer gets it (the `codes` command), control tokens included.
    """

    text: str
    voice: Voice
    style: Style
    refined: tuple[int, ...] | None = None
    raw: str | None = None


class RowRunner(Protocol):
    """Rows in, codes and sound out. Called by one thread."""

    table: SlotTable

    @property
    def device_name(self) -> str: ...

    @property
    def dtype_name(self) -> str: ...

    def begin(self, slot: int, prompt: PromptText, row: RowSetup) -> None:
        """Prefill a slot. Raises InvalidRequestError where the prompt cannot fit."""

    def step(self, slots: Slots) -> StepOutcome:
        """One code for each row (its first, if it has just begun). Changes nothing if it raises."""

    def vocode(self, windows: Sequence[tuple[int, Window]]) -> list[Samples]:
        """The sound of all steps of each (slot, window), in order; windows of one length."""

    def text_ids(self, slot: int) -> tuple[int, ...]:
        """What a refine row has written, control tokens left out."""

    def release(self, slot: int) -> None:
        """The slot's row is over."""

    def warm_up(self) -> None: ...
