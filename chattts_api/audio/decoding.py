"""Audio files that people upload, decoded in a helper process that may be killed.

The helper has bounds on memory, time and output, so a bomb or a crashing decoder costs its own
request only. Nothing of the file's name or of the decoder's words reaches the caller.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np

from chattts_api.errors import ContentTooLargeError, InvalidAudioError
from chattts_api.types import SAMPLE_RATE, Samples

MAX_UPLOAD_BYTES: Final = 10 << 20
_TIMEOUT_S: Final = 20.0
_WORKER: Final = "chattts_api.audio.decode_worker"
_TOO_LONG: Final = 3  # exit code of the worker


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """How long a sound may be."""

    min_s: float = 0.05
    max_s: float = 30.0


async def decode_audio(data: bytes, limits: DecodeLimits, *, param: str = "file") -> Samples:
    """A WAV, FLAC, Ogg or MP3 file as mono 24 kHz samples.

    Raises:
        ContentTooLargeError: more than 10 MiB.
        InvalidAudioError: another format, broken, silent, too short or too long.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise ContentTooLargeError(
            f"An audio file has at most {MAX_UPLOAD_BYTES >> 20} MiB.", param=param
        )
    if not is_audio(data):
        raise InvalidAudioError("The file is none of WAV, FLAC, Ogg, MP3.", param=param)
    code, out = await _run(data, limits)
    if code == _TOO_LONG:
        raise InvalidAudioError(f"The sound is longer than {limits.max_s:g} s.", param=param)
    if code != 0:
        raise InvalidAudioError("The audio file cannot be read.", param=param)
    samples = np.frombuffer(out, "<f4")
    if len(samples) < limits.min_s * SAMPLE_RATE:
        raise InvalidAudioError(f"The sound is shorter than {limits.min_s:g} s.", param=param)
    return samples


def is_audio(data: bytes) -> bool:
    """Whether the first bytes are those of a format that is read."""
    if data[:4] == b"RIFF":
        return data[8:12] == b"WAVE"
    is_mpeg = len(data) > 2 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2
    return data[:4] in {b"fLaC", b"OggS"} or data[:3] == b"ID3" or is_mpeg


async def _run(data: bytes, limits: DecodeLimits) -> tuple[int, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", _WORKER, f"{limits.max_s}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            out, _ = await process.communicate(data)
    except TimeoutError:
        return -1, b""
    else:
        return process.returncode or 0, out
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
