"""One loudness for all voices: one gain per request, never per chunk; no sample above full scale.

The gain is decided once, from the first third of a second in which something sounds, and stays.
It has no K-weighting: that changes speech by less than the gain's own uncertainty (2 to 3 dB).
"""

from dataclasses import dataclass

import numpy as np

from chattts_api.audio.filtering import NOTHING, FilterChain
from chattts_api.types import SAMPLE_RATE, Samples

SOUNDING = 0.003  # -50 dB of full scale
KNEE = 0.8
CEILING = 0.99


@dataclass(frozen=True, slots=True)
class LoudnessTarget:
    """Where a request's loudness should be.

    Attributes:
        level_db: of the sounding parts, root mean square, relative to full scale.
        max_gain_db: neither louder nor softer than this, whatever was measured.
        window_s: how much sound is heard before the gain is decided; it waits that long.
    """

    level_db: float = -20.0
    max_gain_db: float = 9.0
    window_s: float = 0.3


class Loudness:
    """Brings a request to its target, streaming.

    Silence before the first sounding sample passes as it is, then `window_s` is held back, then
    nothing. A `gain` that is known, as for a voice measured before, holds back nothing at all.
    """

    def __init__(
        self,
        sample_rate: int = SAMPLE_RATE,
        target: LoudnessTarget | None = None,
        *,
        gain: float | None = None,
    ) -> None:
        self._rate = sample_rate
        self._target = target or LoudnessTarget()
        self._num_window = round(self._target.window_s * sample_rate)
        self._held: Samples = NOTHING
        self.gain = gain

    def push(self, samples: Samples) -> Samples:
        if self.gain is not None:
            return limited(samples * np.float32(self.gain))
        lead = NOTHING
        if not len(self._held):
            onset = _onset(samples)
            lead, samples = samples[:onset], samples[onset:]
        self._held = np.concatenate((self._held, samples))
        if len(self._held) < self._num_window:
            return lead
        return np.concatenate((lead, self._release()))

    def flush(self) -> Samples:
        return self._release() if self.gain is None else NOTHING

    def _release(self) -> Samples:
        self.gain = gain_for(self._held[: self._num_window], self._rate, self._target)
        held, self._held = self._held, NOTHING
        return self.push(held)


def _onset(samples: Samples) -> int:
    sounding = np.flatnonzero(np.abs(samples) > SOUNDING)
    return int(sounding[0]) if len(sounding) else len(samples)


def gain_for(samples: Samples, sample_rate: int, target: LoudnessTarget) -> float:
    """The gain that brings a sound's level to the target, within its bounds. Silence: 1."""
    level_db = level(samples, sample_rate)
    if level_db is None:
        return 1.0
    gain_db = np.clip(target.level_db - level_db, -target.max_gain_db, target.max_gain_db)
    return float(10 ** (gain_db / 20))


def level(samples: Samples, sample_rate: int) -> float | None:
    """The level in dB of the parts that sound: 10 ms frames within 20 dB of the loudest."""
    size = sample_rate // 100
    num_frames = -(-len(samples) // size)
    frames = np.pad(samples, (0, num_frames * size - len(samples))).reshape(num_frames, size)
    power = np.square(frames, dtype=np.float64).mean(axis=1)
    if not num_frames or power.max() <= SOUNDING**2 / 2:
        return None
    return float(10 * np.log10(power[power >= power.max() / 100].mean()))


def limited(samples: Samples) -> Samples:
    """A soft limiter without memory: below 0.8 the samples as they are, above it towards 0.99."""
    over = np.abs(samples) - np.float32(KNEE)
    room = np.float32(CEILING - KNEE)
    bent = np.sign(samples) * (np.float32(KNEE) + room * np.tanh(np.maximum(over, 0) / room))
    out: Samples = np.where(over > 0, bent, samples).astype(np.float32)
    return out


class HighPass:
    """Takes the rumble below speech away: two poles at 60 Hz, streaming, without delay."""

    def __init__(self, sample_rate: int = SAMPLE_RATE, cutoff_hz: float = 60.0) -> None:
        self._chain = FilterChain([("highpass", f"f={cutoff_hz}:r=f64")], sample_rate)

    def push(self, samples: Samples) -> Samples:
        return self._chain.push(samples)

    def flush(self) -> Samples:
        return self._chain.flush()
