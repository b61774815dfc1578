"""espeak-ng's samples as an engine's: 24 kHz, without the silence around the words."""

import av
import numpy as np

from chattts_api.types import SAMPLE_RATE, Samples

SILENCE = 0.004  # of full scale; espeak-ng's pauses are exact zeros but for a fading tail
EDGE_S = 0.01


def trimmed(samples: Samples, sample_rate: int) -> Samples:
    """The words alone, with 10 ms around them. Empty where nothing sounds."""
    loud = np.flatnonzero(np.abs(samples) > SILENCE)
    if not len(loud):
        return samples[:0]
    edge = round(EDGE_S * sample_rate)
    return samples[max(0, loud[0] - edge) : loud[-1] + 1 + edge]


def at_engine_rate(samples: Samples, sample_rate: int) -> Samples:
    if not len(samples) or sample_rate == SAMPLE_RATE:
        return samples
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
    frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
    frame.sample_rate = sample_rate
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([f.to_ndarray().reshape(-1) for f in frames]).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)
