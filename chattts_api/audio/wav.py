"""WAV files: the canonical 44-byte header, 16-bit mono."""

import struct
from collections.abc import Mapping

UNKNOWN_SIZE = 0xFFFFFFFF  # readers take it as "until the end"; with 0 some find no sound at all
HEADER_SIZE = 44

_INFO_IDS = {"title": b"INAM", "artist": b"IART", "comment": b"ICMT"}


def wav_header(sample_rate: int, data_size: int | None = None, tail_size: int = 0) -> bytes:
    """The header before `data_size` bytes of sound, None where that is not known yet."""
    riff_size = UNKNOWN_SIZE if data_size is None else HEADER_SIZE - 8 + data_size + tail_size
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", riff_size, b"WAVE"),
        *(b"fmt ", 16, 1, 1, sample_rate, sample_rate * 2, 2, 16),
        *(b"data", UNKNOWN_SIZE if data_size is None else data_size),
    )


def wav_info(metadata: Mapping[str, str]) -> bytes:
    """A LIST chunk with what WAV has a place for: title, artist, comment. Empty without any."""
    body = b"".join(
        _chunk(_INFO_IDS[key], value.encode() + b"\0")
        for key, value in metadata.items()
        if key in _INFO_IDS
    )
    return _chunk(b"LIST", b"INFO" + body) if body else b""


def whole_wav(pcm: bytes, sample_rate: int, metadata: Mapping[str, str]) -> bytes:
    """A file with exact sizes; what it says of itself stands behind the data."""
    info = wav_info(metadata)
    return wav_header(sample_rate, len(pcm), len(info)) + pcm + info


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
