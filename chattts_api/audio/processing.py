"""What every streaming processor of samples offers, and several of them in a row."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from chattts_api.audio.filtering import NOTHING
from chattts_api.types import Samples


class Processor(Protocol):
    """`push` any number of times, then `flush` once.

    The joined output depends on the joined input alone, not on how it was cut.
    """

    def push(self, samples: Samples) -> Samples: ...

    def flush(self) -> Samples: ...


class ProcessorChain:
    """Processors one after the other."""

    def __init__(self, processors: Sequence[Processor]) -> None:
        self._processors = tuple(processors)

    def push(self, samples: Samples) -> Samples:
        for processor in self._processors:
            samples = processor.push(samples)
        return samples

    def flush(self) -> Samples:
        rest = NOTHING
        for processor in self._processors:
            rest = np.concatenate((processor.push(rest), processor.flush()))
        return rest


def processed(pieces: Iterable[Samples], processor: Processor) -> Samples:
    """All of a sound at once."""
    return np.concatenate([*(processor.push(piece) for piece in pieces), processor.flush()])
