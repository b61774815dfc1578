"""Putting a finished file in its place so that neither a crash nor a power cut can halve it."""

import os
from pathlib import Path


def replace_durably(temporary: Path, target: Path) -> None:
    """Rename a closed and fsynced file over its target; on return the rename is on the disk."""
    os.replace(temporary, target)  # noqa: PTH105  the name that says that it is atomic
    fsync_folder(target.parent)


def fsync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk, where the system can (Windows does it by itself)."""
    flags = getattr(os, "O_DIRECTORY", None)
    if flags is None:
        return
    descriptor = os.open(folder, os.O_RDONLY | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
