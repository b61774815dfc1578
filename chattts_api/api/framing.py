"""PCM cut into frames of 20 ms, as the readers of /ws/tts expect them."""

from collections.abc import Iterator
from typing import Final

FRAME_MS: Final = 20
_SAMPLE_BYTES: Final = 2


class Framer:
    """Whole frames out of pieces of any size; the last frame may be shorter."""

    def __init__(self, sample_rate: int) -> None:
        self._frame_bytes = sample_rate * FRAME_MS // 1000 * _SAMPLE_BYTES
        self._rest = bytearray()

    def push(self, data: bytes) -> Iterator[bytes]:
        self._rest += data
        num_whole = len(self._rest) // self._frame_bytes * self._frame_bytes
        whole = bytes(self._rest[:num_whole])
        del self._rest[:num_whole]
        for start in range(0, num_whole, self._frame_bytes):
            yield whole[start : start + self._frame_bytes]

    def finish(self) -> bytes:
        """What is left, an even number of bytes."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest
