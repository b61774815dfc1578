"""Speaker vectors as .npy, CSV and safetensors bytes. Reading is bounded and never unpickles."""

import io
import re
from typing import Any, Final

import numpy as np
import safetensors
import safetensors.numpy

from chattts_api.errors import InvalidSpeakerError
from chattts_api.types import SPEAKER_SIZE
from chattts_api.voices.vector import SpeakerVector, as_speaker

NPY_MAGIC: Final = b"\x93NUMPY"

_SEPARATORS = re.compile(r"[\s,;]+")
# What numpy writes, and nothing else that its own reader would evaluate.
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>]f[248])', 'fortran_order': (?:False|True), "
    rb"'shape': \((?:1, )?%d,?\), \}\s*" % SPEAKER_SIZE
)
_SAFETENSORS_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}
_TENSOR_NAME = "speaker"


def npy_bytes(speaker: SpeakerVector) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, speaker.astype("<f2"), allow_pickle=False)
    return buffer.getvalue()


def csv_bytes(speaker: SpeakerVector) -> bytes:
    """One line of decimals that read back to the same float16 values."""
    return (",".join(repr(float(value)) for value in speaker) + "\n").encode()


def safetensors_bytes(speaker: SpeakerVector) -> bytes:
    return safetensors.numpy.save({_TENSOR_NAME: np.ascontiguousarray(speaker)})


def read_npy(data: bytes) -> SpeakerVector:
    """The vector of a .npy file, its header checked before anything of its size is made.

    Raises:
        InvalidSpeakerError: not a float array of 768 values.
    """
    version = data[len(NPY_MAGIC)] if len(data) > len(NPY_MAGIC) else 0
    begin = 10 if version == 1 else 12
    end = begin + int.from_bytes(data[8:begin], "little")
    header = _NPY_HEADER.fullmatch(data[begin:end])
    if version not in {1, 2, 3} or header is None:
        raise InvalidSpeakerError(f"The .npy file must hold {SPEAKER_SIZE} floats.", param="file")
    dtype = np.dtype(header[1].decode())
    if len(data) - end != SPEAKER_SIZE * dtype.itemsize:
        raise InvalidSpeakerError("The .npy file is not as long as it says.", param="file")
    return as_speaker(np.frombuffer(data[end:], dtype))


def read_csv(text: str) -> SpeakerVector:
    """The vector of 768 decimals, in one line or many.

    Raises:
        InvalidSpeakerError: something else.
    """
    words = [word for word in _SEPARATORS.split(text.strip().strip("[]()")) if word]
    if len(words) != SPEAKER_SIZE:
        raise InvalidSpeakerError(
            f"The text must hold {SPEAKER_SIZE} numbers; it holds {len(words)} words.", param="file"
        )
    try:
        return as_speaker([float(word) for word in words])
    except ValueError as error:
        raise InvalidSpeakerError("The text holds more than numbers.", param="file") from error


def read_safetensors(data: bytes) -> SpeakerVector:
    """The vector of the only tensor of 768 floats in a safetensors file.

    Raises:
        InvalidSpeakerError: there is none, or more than one.
    """
    try:
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise InvalidSpeakerError("Not a sound safetensors file.", param="file") from error
    found = [_tensor(entry) for _, entry in tensors if _is_speaker(entry)]
    if len(found) != 1:
        raise InvalidSpeakerError(
            f"The safetensors file must hold one tensor of {SPEAKER_SIZE} floats; "
            f"it holds {len(found)}.",
            param="file",
        )
    return as_speaker(found[0])


def _is_speaker(entry: dict[str, Any]) -> bool:
    shape = list(entry["shape"])
    return entry["dtype"] in _SAFETENSORS_TYPES and shape in ([SPEAKER_SIZE], [1, SPEAKER_SIZE])


def _tensor(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = np.frombuffer(entry["data"], _SAFETENSORS_TYPES[entry["dtype"]])
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (values.astype("<u4") << 16).view("<f4")
    return values
