"""Base16384: 7 bytes as 4 characters of 14 bits, U+4E00 to U+8DFF.

The characters come from strangers, so everything is checked before it is decoded: the alphabet,
the length, the trailer U+3D01 to U+3D06 that counts the bytes of a short last group, and the
padding bits of that group.
"""

import re

import numpy as np

_GROUP_BYTES = 7
_GROUP_CHARACTERS = 4
_BITS = 14
_FIRST = 0x4E00
_TRAILER = 0x3D00
_SHIFTS = np.array([42, 28, 14, 0], dtype=np.uint64)
_PATTERN = re.compile("[\u4e00-\u8dff]*[\u3d01-\u3d06]?")


class Base16384Error(ValueError):
    """Not base16384 text. The message says what is wrong without repeating the text."""


def encode(data: bytes) -> str:
    """Bytes as base16384 text."""
    short = len(data) % _GROUP_BYTES
    groups = -(-len(data) // _GROUP_BYTES)
    octets = np.zeros((groups, 8), dtype=np.uint8)
    padded = data.ljust(groups * _GROUP_BYTES, b"\0")
    octets[:, 1:] = np.frombuffer(padded, np.uint8).reshape(groups, _GROUP_BYTES)
    words = octets.view(">u8").astype(np.uint64)  # [groups, 1]
    characters = ((words >> _SHIFTS) & np.uint64(0x3FFF)) + np.uint64(_FIRST)
    text = characters.astype(">u2").tobytes().decode("utf-16-be")
    if not short:
        return text
    unused = _GROUP_CHARACTERS - _num_characters(short)
    return text[: len(text) - unused] + chr(_TRAILER + short)


def decode(text: str) -> bytes:
    """The bytes of base16384 text.

    Raises:
        Base16384Error: a character outside the alphabet, an impossible length, set padding bits.
    """
    if _PATTERN.fullmatch(text) is None:
        raise Base16384Error("it holds characters that base16384 does not use")
    short = ord(text[-1]) - _TRAILER if text and ord(text[-1]) < _FIRST else 0
    body = text[:-1] if short else text
    num_last = _num_characters(short)
    if len(body) < num_last or (len(body) - num_last) % _GROUP_CHARACTERS:
        raise Base16384Error("its length does not fit its last character")
    groups = -(-len(body) // _GROUP_CHARACTERS)
    body = body.ljust(groups * _GROUP_CHARACTERS, chr(_FIRST))
    values = np.frombuffer(body.encode("utf-16-be"), ">u2").astype(np.uint64) - np.uint64(_FIRST)
    words = (values.reshape(groups, _GROUP_CHARACTERS) << _SHIFTS).sum(axis=1, dtype=np.uint64)
    octets: bytes = words.astype(">u8").view(np.uint8).reshape(groups, 8)[:, 1:].tobytes()
    end = len(octets) - (_GROUP_BYTES - short if short else 0)
    if any(octets[end:]):
        raise Base16384Error("the padding of its last group is not empty")
    return octets[:end]


def is_alphabet(text: str) -> bool:
    """Whether every character of the text, the last one included, can stand in base16384."""
    return _PATTERN.fullmatch(text) is not None


def _num_characters(num_bytes: int) -> int:
    """Characters of a short group of that many bytes."""
    return -(-num_bytes * 8 // _BITS)
