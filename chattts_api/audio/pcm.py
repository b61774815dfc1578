"""Samples as 16-bit little-endian PCM."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chattts_api.errors import GenerationFailedError
from chattts_api.types import Samples

Pcm: TypeAlias = npt.NDArray[np.int16]


def clipped(samples: Samples) -> Samples:
    """Samples within -1 to 1. Raises GenerationFailedError for NaN and infinities."""
    if not np.isfinite(samples).all():
        raise GenerationFailedError("The speech came out broken. Try another seed.")
    return np.clip(samples, -1, 1)


def to_pcm(samples: Samples) -> Pcm:
    """int16 without dither: clip, scale by 32767, round to the nearest."""
    pcm: Pcm = np.rint(clipped(samples) * np.float32(32767)).astype("<i2")
    return pcm


def to_pcm_bytes(samples: Samples) -> bytes:
    return to_pcm(samples).tobytes()
