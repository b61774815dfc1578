"""Speaker and sample codes: the strings that ChatTTS users pass around.

A speaker code is base16384(raw LZMA2(float16 values)); a sample code is base16384(two uint16 of
shape, raw LZMA2(uint16 codes)). A decoder here never produces more than it was told to expect,
whatever the code claims.
"""

import lzma
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from chattts_api.errors import InvalidSpeakerError
from chattts_api.types import SPEAKER_SIZE, STEPS_PER_SECOND
from chattts_api.voices import base16384
from chattts_api.voices.base16384 import Base16384Error
from chattts_api.voices.vector import SpeakerVector, as_speaker

MAX_CODE_CHARACTERS: Final = 4_096
MAX_SAMPLE_CHARACTERS: Final = 8_192
MAX_SAMPLE_STEPS: Final = int(30 * STEPS_PER_SECOND)
NUM_CODEBOOKS: Final = 4
NUM_CODES: Final = 625

SampleCodes = npt.NDArray[np.uint16]  # [4, T]

_SHAPE = struct.Struct("<2H")
# No code unpacks to 64 KiB, so no distance reaches further back: the preset's dictionary of 64 MiB
# would be filled by nothing, and costs 40 ms to set up.
_DICT_BYTES = 1 << 16
_WRITE_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": _DICT_BYTES}
]
_READ_FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": _DICT_BYTES}]


def encode_speaker(vector: npt.ArrayLike) -> str:
    """The code of a speaker vector, as ChatTTS writes it.

    Raises:
        InvalidSpeakerError: not a speaker vector.
    """
    return base16384.encode(_pack(as_speaker(vector).astype("<f2").tobytes()))


def decode_speaker(code: str, size: int = SPEAKER_SIZE) -> SpeakerVector:
    """The speaker vector of a code, float16 [size], read-only.

    Raises:
        InvalidSpeakerError: anything but the code of `size` finite float16 values.
    """
    packed = _read_text(code, MAX_CODE_CHARACTERS, "speaker")
    num_bytes = size * 2
    data = _unpack(packed, num_bytes)
    if data is None and looks_like_sample(packed):
        raise InvalidSpeakerError(
            "This is the code of a sample, not of a speaker: a sample also needs its transcript, "
            "save it as a voice first.",
            param="voice",
        )
    if data is None or len(data) != num_bytes:
        raise InvalidSpeakerError(
            f"The speaker code does not hold {size} values; was it copied whole?", param="voice"
        )
    return as_speaker(np.frombuffer(data, "<f2"), size)


def encode_sample(codes: npt.ArrayLike) -> str:
    """The code of a sample prompt's codes [4, T].

    Raises:
        InvalidSpeakerError: not codes of that shape and range.
    """
    checked = as_sample_codes(codes)
    return base16384.encode(_SHAPE.pack(*checked.shape) + _pack(checked.astype("<u2").tobytes()))


def decode_sample(code: str) -> SampleCodes:
    """The codes of a sample code, uint16 [4, T], read-only.

    Raises:
        InvalidSpeakerError: anything but the code of 4 rows of 1 to 1,406 codes below 625.
    """
    packed = _read_text(code, MAX_SAMPLE_CHARACTERS, "sample")
    if len(packed) < _SHAPE.size:
        raise InvalidSpeakerError("The sample code is too short.", param="voice")
    rows, steps = _SHAPE.unpack_from(packed)
    _check_sample_shape((rows, steps))
    num_bytes = rows * steps * 2
    data = _unpack(packed[_SHAPE.size :], num_bytes)
    if data is None or len(data) != num_bytes:
        raise InvalidSpeakerError(
            "The sample code does not hold what its first characters announce.", param="voice"
        )
    return as_sample_codes(np.frombuffer(data, "<u2").reshape(rows, steps))


def as_sample_codes(codes: npt.ArrayLike) -> SampleCodes:
    """The codes as read-only uint16 [4, T], their shape and range checked.

    Raises:
        InvalidSpeakerError: another shape, or a code of 625 and more.
    """
    values = np.asarray(codes)
    _check_sample_shape(values.shape)
    if values.dtype.kind not in "iu" or int(values.min()) < 0 or int(values.max()) >= NUM_CODES:
        raise InvalidSpeakerError(
            f"A sample's codes are whole numbers from 0 to {NUM_CODES - 1}.", param="voice"
        )
    checked = values.astype(np.uint16)
    checked.flags.writeable = False
    return checked


def looks_like_sample(packed: bytes) -> bool:
    """Whether unpacked base16384 begins with the shape of a sample."""
    if len(packed) <= _SHAPE.size:
        return False
    rows, steps = _SHAPE.unpack_from(packed)
    return bool(rows == NUM_CODEBOOKS and 1 <= steps <= MAX_SAMPLE_STEPS)


def _check_sample_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != NUM_CODEBOOKS or not 1 <= shape[1] <= MAX_SAMPLE_STEPS:
        raise InvalidSpeakerError(
            f"A sample is {NUM_CODEBOOKS} rows of 1 to {MAX_SAMPLE_STEPS} codes.", param="voice"
        )


def _read_text(code: str, max_characters: int, kind: str) -> bytes:
    if not code or len(code) > max_characters:
        raise InvalidSpeakerError(
            f"A {kind} code has 1 to {max_characters} characters.", param="voice"
        )
    try:
        return base16384.decode(code)
    except Base16384Error as error:
        raise InvalidSpeakerError(f"Not a {kind} code: {error}.", param="voice") from error


def _pack(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_RAW, filters=_WRITE_FILTERS)


def _unpack(packed: bytes, num_bytes: int) -> bytes | None:
    """At most num_bytes + 1 unpacked bytes; None when the stream is broken or goes on."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_READ_FILTERS)
    try:
        data = reader.decompress(packed, max_length=num_bytes + 1)
    except lzma.LZMAError:
        return None
    return data if reader.eof and not reader.unused_data else None
