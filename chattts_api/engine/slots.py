"""What the runner knows of each row, as arrays over the slots, so that no step loops over rows.

Plain numpy on the host; the large buffers (codes, hidden states, keys and values) are the runner's.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chattts_api.types import SamplingParams

Slots = npt.NDArray[np.int64]  # [B], distinct
Mask = npt.NDArray[np.bool_]  # [B]


@dataclass(frozen=True, slots=True)
class RowSetup:
    """How a row begins.

    Attributes:
        is_text: draws text ids (the refine pass) rather than codes.
        min_steps: the end is forbidden until then.
        end_at: the step budget.
    """

    sampling: SamplingParams
    seed: int
    max_steps: int
    min_steps: int = 0
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What one step did to rows [B]; `ended`, `broken` rows made no code in it."""

    slots: Slots
    ended: Mask
    broken: Mask


class SlotTable:
    """Per-slot state and parameters."""

    def __init__(self, num_slots: int) -> None:
        self.num_prompt = np.zeros(num_slots, np.int64)
        self.num_steps = np.zeros(num_slots, np.int64)
        self.max_steps = np.zeros(num_slots, np.int64)
        self.min_steps = np.zeros(num_slots, np.int64)
        self.due_at = np.full(num_slots, np.iinfo(np.int64).max, np.int64)
        self.seed = np.zeros(num_slots, np.uint64)
        self.is_text = np.zeros(num_slots, np.bool_)
        self.temperature = np.zeros(num_slots, np.float32)
        self.top_p = np.zeros(num_slots, np.float32)
        self.top_k = np.zeros(num_slots, np.int64)
        self.repetition_penalty = np.zeros(num_slots, np.float32)

    def assign(self, slot: int, num_prompt: int, row: RowSetup) -> None:
        self.num_prompt[slot] = num_prompt
        self.num_steps[slot] = 0
        self.max_steps[slot] = row.max_steps
        self.min_steps[slot] = row.min_steps
        self.due_at[slot] = np.iinfo(np.int64).max
        self.seed[slot] = row.seed
        self.is_text[slot] = row.is_text
        self.temperature[slot] = row.sampling.temperature
        self.top_p[slot] = row.sampling.top_p
        self.top_k[slot] = row.sampling.top_k
        self.repetition_penalty[slot] = row.sampling.repetition_penalty

    def positions(self, slots: Slots) -> npt.NDArray[np.int64]:
        """Where the key and value of each row's last code go."""
        return self.num_prompt[slots] + self.num_steps[slots] - 1

    def is_cut(self, slots: Slots) -> Mask:
        return self.num_steps[slots] >= self.max_steps[slots]

    def is_due(self, slots: Slots) -> Mask:
        return self.num_steps[slots] >= self.due_at[slots]
