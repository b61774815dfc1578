"""Speaker vectors from a seed: mean + std * normal, the same numbers on every platform.

The normals use nothing but 64-bit integers and the operations that IEEE 754 rounds exactly
(+ - * / sqrt), so no library's logarithm or random generator can move them.
"""

from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chattts_api.types import SPEAKER_SIZE
from chattts_api.voices.vector import SpeakerVector, as_speaker

MAX_SEED: Final = 2**63 - 1

Doubles: TypeAlias = npt.NDArray[np.float64]

_STATS_FILE = Path(__file__).parent / "data" / "speaker_stats.npz"
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
_LN2 = 0.6931471805599453
_SERIES_TERMS = 13  # |s| < 0.172: the first term left out is below 1e-21


def sample_speaker(seed: int) -> SpeakerVector:
    """The speaker of a seed from 0 to 2^63 - 1."""
    mean, std = speaker_stats()
    return as_speaker(mean + std * normals(seed, SPEAKER_SIZE))


@cache
def speaker_stats() -> tuple[Doubles, Doubles]:
    """Mean and standard deviation [768] of ChatTTS's speakers (see data/NOTICE.md)."""
    with np.load(_STATS_FILE, allow_pickle=False) as stats:
        mean, std = (stats[key].astype(np.float64) for key in ("mean", "std"))
    mean.flags.writeable = std.flags.writeable = False
    return mean, std


def normals(seed: int, count: int) -> Doubles:
    """`count` standard normals by Marsaglia's polar method, a function of the seed alone."""
    if not 0 <= seed <= MAX_SEED:
        raise ValueError("a seed is a whole number from 0 to 2^63 - 1")
    accepted: list[Doubles] = []
    num_pairs, begin = 0, 0
    while num_pairs * 2 < count:
        points = _uniforms(seed, begin, 2 * count).reshape(-1, 2) * 2 - 1
        begin += 2 * count
        radii = points[:, 0] * points[:, 0] + points[:, 1] * points[:, 1]
        inside = (radii > 0) & (radii < 1)
        points, radii = points[inside], radii[inside]
        accepted.append(points * np.sqrt(-2 * _log(radii) / radii)[:, None])
        num_pairs += len(points)
    return np.concatenate(accepted).reshape(-1)[:count]


def _uniforms(seed: int, begin: int, count: int) -> Doubles:
    """Doubles [0, 1) number begin, begin + 1, ... of the seed's SplitMix64 sequence."""
    # Hashed once, so that the sequences of two seeds are not the same one, shifted.
    start = int(_mix(np.array([seed], dtype=np.uint64))[0])
    offset = (start + (begin + 1) * _GOLDEN_GAMMA) & _MASK
    counters = np.arange(count, dtype=np.uint64) * np.uint64(_GOLDEN_GAMMA)
    bits = _mix(counters + np.uint64(offset)) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def _mix(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _log(values: Doubles) -> Doubles:
    """Natural logarithm of positive values, by 2 artanh((m - 1) / (m + 1)) of the mantissa."""
    mantissas, exponents = np.frexp(values)
    is_low = mantissas < 0.7071067811865476
    mantissas = np.where(is_low, mantissas * 2, mantissas)
    powers = exponents.astype(np.float64) - is_low
    s = (mantissas - 1) / (mantissas + 1)
    square = s * s
    series = np.zeros_like(s)
    for n in range(_SERIES_TERMS, -1, -1):
        series = series * square + 1.0 / (2 * n + 1)
    return np.asarray(powers * _LN2 + 2 * s * series, dtype=np.float64)
