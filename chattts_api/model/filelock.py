"""A lock between processes that a killed process cannot leave behind."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def file_lock(path: Path, *, is_patient: bool = True) -> Iterator[None]:
    """Hold the lock on that file, creating it if need be; the system frees it at exit.

    Raises:
        BlockingIOError: somebody else holds it, and the caller is not patient.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, is_patient=is_patient)
        yield
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(descriptor: int, *, is_patient: bool) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if is_patient else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, "the file is locked") from error

else:

    def _lock(descriptor: int, *, is_patient: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))
