"""A file that is still being fetched: its bytes, and the hash of those that are there."""

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from chattts_api.model.weights_layout import OfficialFile

_CHUNK_BYTES = 1 << 20


class WrongFileError(Exception):
    """What was fetched is another file than the one expected."""


class PartFile:
    """Appends to a part and hashes as it goes; what is there already is hashed once."""

    def __init__(self, path: Path, file: OfficialFile) -> None:
        self._expected = file
        self._stream: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self._hash = hashlib.sha256()
        self.num_bytes = 0

    def __enter__(self) -> Self:
        while chunk := self._stream.read(_CHUNK_BYTES):
            self._hash.update(chunk)
            self.num_bytes += len(chunk)
        if self.num_bytes > self._expected.num_bytes:
            self.restart()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()

    @property
    def is_full(self) -> bool:
        return self.num_bytes == self._expected.num_bytes

    def append(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            WrongFileError: there are more than the file has.
        """
        if self.num_bytes + len(data) > self._expected.num_bytes:
            raise WrongFileError(f"it has more than {self._expected.num_bytes} bytes")
        self._stream.write(data)
        self._hash.update(data)
        self.num_bytes += len(data)

    def restart(self) -> None:
        """Forget every byte."""
        self._stream.seek(0)
        self._stream.truncate()
        self._hash = hashlib.sha256()
        self.num_bytes = 0

    def finish(self) -> None:
        """Put the bytes on the disk.

        Raises:
            WrongFileError: their hash is not the expected one.
        """
        if self._hash.hexdigest() != self._expected.sha256:
            raise WrongFileError(
                f"its sha256 is {self._hash.hexdigest()}, not {self._expected.sha256}"
            )
        self._stream.flush()
        os.fsync(self._stream.fileno())
