"""Faster or slower speech at the same pitch (libavfilter's atempo, an overlap-add in time)."""

import math

import numpy as np

from chattts_api.audio.filtering import NOTHING, FilterChain
from chattts_api.types import Samples

MIN_SPEED = 0.25
MAX_SPEED = 4.0


class TimeStretch:
    """Streaming; the joined output has round(N / speed) samples. Speed 1 is the identity.

    atempo takes one overlap window (43 ms at 24 kHz) to begin and loses about as much at the end:
    the input is followed by that much silence, and the output cut to its exact length.
    """

    def __init__(self, speed: float, sample_rate: int) -> None:
        assert MIN_SPEED <= speed <= MAX_SPEED
        self._speed = speed
        self._rate = sample_rate
        self._num_in = 0
        self._num_out = 0
        self._held: Samples = NOTHING
        # One atempo skips samples above 2 and cannot go below 0.5; two share the work.
        num_stages = 1 if 0.5 <= speed <= 2 else 2
        factor = f"{math.pow(speed, 1 / num_stages):.9f}"
        self._chain = (
            None if speed == 1 else FilterChain([("atempo", factor)] * num_stages, sample_rate)
        )

    def push(self, samples: Samples) -> Samples:
        if self._chain is None:
            return samples
        self._num_in += len(samples)
        return self._release(self._chain.push(samples), self._num_expected)

    def flush(self) -> Samples:
        if self._chain is None or not self._num_in:
            return NOTHING
        margin = np.zeros(round(self._rate * 0.2 * max(1.0, self._speed)), np.float32)
        rest = np.concatenate((self._chain.push(margin), self._chain.flush()))
        out = self._release(rest, self._num_expected)
        missing = self._num_expected - self._num_out
        self._num_out += missing
        return np.pad(out, (0, missing))

    @property
    def _num_expected(self) -> int:
        return round(self._num_in / self._speed)

    def _release(self, samples: Samples, limit: int) -> Samples:
        """What may leave without the output outgrowing its final length."""
        pending = np.concatenate((self._held, samples))
        num = min(len(pending), limit - self._num_out)
        self._held = pending[num:]
        self._num_out += num
        return pending[:num]


def stretch(samples: Samples, speed: float, sample_rate: int) -> Samples:
    """All of a sound at once."""
    stretcher = TimeStretch(speed, sample_rate)
    return np.concatenate((stretcher.push(samples), stretcher.flush()))
