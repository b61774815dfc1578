"""Random numbers that depend on (seed, step, codebook) alone: no batch mate can shift them.

Counter-based: splitmix64's finaliser over uint64, so every platform draws the same numbers.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

_MASK: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
_STEP: Final = 0xD1B54A32D192ED03
_PLACE: Final = 0x8CB92BA72F3D8DD7
_BITS = 24  # of a float32's significand

Uint64 = npt.NDArray[np.uint64]


def uniforms(seeds: Uint64, steps: npt.NDArray[np.int64], num: int) -> npt.NDArray[np.float32]:
    """Numbers in [0, 1) for each row and each of `num` places.

    seeds uint64 [B], steps int64 [B] -> float32 [B, num], multiples of 2^-24
    """
    key = _mix(_mix(seeds.astype(np.uint64)) + steps.astype(np.uint64) * np.uint64(_STEP))
    places = np.arange(1, num + 1, dtype=np.uint64) * np.uint64(_PLACE)
    drawn = _mix(key[:, None] + places[None, :])
    return (drawn >> np.uint64(64 - _BITS)).astype(np.float32) * np.float32(2.0**-_BITS)


def derive_seed(seed: int, segment: int, attempt: int) -> int:
    """The seed of one try at one segment, 0 to 2^63 - 1: a fixed function of the three."""
    key = seed & _MASK
    for part in (segment, attempt):
        key = _mix_int((key + (part + 1) * _GAMMA) & _MASK)
    return key >> 1


def _mix(x: Uint64) -> Uint64:
    x = x + np.uint64(_GAMMA)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mix_int(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
