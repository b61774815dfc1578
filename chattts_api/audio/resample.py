"""Sample rate conversion of one mono stream, to the sample."""

import numpy as np

from chattts_api.audio.filtering import NOTHING, FilterChain
from chattts_api.types import Samples


class Resampler:
    """Streaming; the joined output has round(N * to_hz / from_hz) samples. Equal rates: identity.

    Half the filter's length, less than 2 ms, is held back until more comes.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from_hz = from_hz
        self._to_hz = to_hz
        self._num_in = 0
        self._num_out = 0
        self._chain = (
            None if from_hz == to_hz else FilterChain([("aresample", f"{to_hz}")], from_hz)
        )

    def push(self, samples: Samples) -> Samples:
        if self._chain is None:
            return samples
        self._num_in += len(samples)
        out = self._chain.push(samples)
        self._num_out += len(out)
        return out

    def flush(self) -> Samples:
        if self._chain is None or not self._num_in:
            return NOTHING
        missing = round(self._num_in * self._to_hz / self._from_hz) - self._num_out
        out = self._chain.flush()[: max(0, missing)]
        return np.pad(out, (0, max(0, missing - len(out))))


def resample(samples: Samples, from_hz: int, to_hz: int) -> Samples:
    """All of a sound at once."""
    resampler = Resampler(from_hz, to_hz)
    return np.concatenate((resampler.push(samples), resampler.flush()))
