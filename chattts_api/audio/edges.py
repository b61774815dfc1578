"""The edges of a sound: silence trimmed within bounds, short fades against clicks."""

from dataclasses import dataclass

import numpy as np

from chattts_api.audio.filtering import NOTHING
from chattts_api.types import SAMPLE_RATE, Samples


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """How edges are cut.

    Attributes:
        keep_s: silence left before the first and after the last sounding sample.
        max_trim_s: at most so much is cut from either end; also how long silence is held back.
        fade_s: length of the fades, not above keep_s: so they never touch what sounds, unless
            the sound begins or ends at full level.
        threshold: below this a sample is silent; 0.003 is -50 dB of full scale.
    """

    keep_s: float = 0.03
    max_trim_s: float = 0.4
    fade_s: float = 0.008
    threshold: float = 0.003

    def __post_init__(self) -> None:
        assert 0 < self.fade_s <= self.keep_s


class EdgeTrim:
    """Trims and fades one stretch of sound, streaming.

    What sounds leaves at once but for the last `fade_s`; silence waits until more sound follows,
    up to `keep_s` + `max_trim_s`.
    """

    def __init__(self, sample_rate: int = SAMPLE_RATE, limits: EdgeLimits | None = None) -> None:
        limits = limits or EdgeLimits()
        self._threshold = np.float32(limits.threshold)
        self._num_keep = round(limits.keep_s * sample_rate)
        self._num_trim = round(limits.max_trim_s * sample_rate)
        self._num_fade = round(limits.fade_s * sample_rate)
        self._ramp = ((np.arange(self._num_fade) + 0.5) / self._num_fade).astype(np.float32)
        self._held: Samples = NOTHING
        self._is_open = False
        self._num_out = 0

    def push(self, samples: Samples) -> Samples:
        self._held = np.concatenate((self._held, samples))
        if not self._is_open and not self._open():
            return NOTHING
        end = self._end_of_sound()
        num = max(
            min(end, len(self._held) - self._num_fade),
            len(self._held) - self._num_trim - self._num_keep,
            0,
        )
        out, self._held = self._held[:num], self._held[num:]
        return self._faded_in(out)

    def flush(self) -> Samples:
        if not self._is_open:
            return NOTHING
        num_held = len(self._held)
        end = max(self._end_of_sound() + self._num_keep, num_held - self._num_trim)
        out = self._faded_in(self._held[:end])
        num_fade = min(self._num_fade, len(out))
        out[len(out) - num_fade :] *= self._ramp[:num_fade][::-1]
        self._held = NOTHING
        return out

    def _open(self) -> bool:
        """Cut the silence at the start, once it is known."""
        sounding = np.flatnonzero(np.abs(self._held) > self._threshold)
        if not len(sounding) and len(self._held) <= self._num_trim + self._num_keep:
            return False
        first = int(sounding[0]) if len(sounding) else len(self._held)
        self._held = self._held[max(0, min(first - self._num_keep, self._num_trim)) :]
        self._is_open = True
        return True

    def _end_of_sound(self) -> int:
        sounding = np.flatnonzero(np.abs(self._held) > self._threshold)
        return int(sounding[-1]) + 1 if len(sounding) else 0

    def _faded_in(self, samples: Samples) -> Samples:
        out = samples.copy()
        num = min(len(out), max(0, self._num_fade - self._num_out))
        out[:num] *= self._ramp[self._num_out : self._num_out + num]
        self._num_out += len(out)
        return out
