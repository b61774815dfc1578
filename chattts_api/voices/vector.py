"""What a speaker vector may be: the one check that every way into the product goes through."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chattts_api.errors import InvalidSpeakerError
from chattts_api.types import SPEAKER_SIZE

SpeakerVector: TypeAlias = npt.NDArray[np.float16]  # [768], before normalisation

# The model divides by the norm in float16: below and above, the quotient is no longer a voice.
_MIN_NORM = 1e-3
_MAX_NORM = float(np.finfo(np.float16).max)


def as_speaker(values: npt.ArrayLike, size: int = SPEAKER_SIZE) -> SpeakerVector:
    """The values as a read-only float16 vector [size]; [1, size] is taken as [size].

    Raises:
        InvalidSpeakerError: another shape, a value that is not finite in float16, no length.
    """
    try:
        with np.errstate(all="ignore"):
            wide = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSpeakerError(
            f"A speaker is {size} numbers; this holds something else.", param="voice"
        ) from error
    if wide.shape not in {(size,), (1, size)}:
        raise InvalidSpeakerError(
            f"A speaker is {size} numbers; this one has the shape {_shape(wide.shape)}.",
            param="voice",
        )
    is_finite = bool(np.isfinite(wide).all()) and float(np.abs(wide).max()) <= _MAX_NORM
    norm = float(np.sqrt(np.square(wide).sum())) if is_finite else _MAX_NORM
    if norm >= _MAX_NORM:
        raise InvalidSpeakerError(
            "A speaker's numbers must be finite and within float16.", param="voice"
        )
    speaker = wide.reshape(size).astype(np.float16)
    if norm < _MIN_NORM or not speaker.any():
        raise InvalidSpeakerError("A speaker's numbers must not all be zero.", param="voice")
    speaker.flags.writeable = False
    return speaker


def _shape(shape: tuple[int, ...]) -> str:
    shown = " x ".join(str(n) for n in shape[:4])
    return f"{shown or 'of a single number'}{' x ...' if len(shape) > 4 else ''}"
