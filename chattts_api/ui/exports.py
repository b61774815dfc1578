"""Files that the page offers to save; Gradio takes its own copy, so ours go soon after."""

import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

MAX_AGE_S: Final = 600


class ExportFolder:
    """A private folder that goes with the process."""

    def __init__(self, *, max_age_s: float = MAX_AGE_S) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="chattts-exports-")
        self._max_age_s = max_age_s

    def path(self, name: str) -> Path:
        """A place for a file of that name; what is old is cleared away."""
        self._sweep()
        place = Path(self._folder.name) / secrets.token_urlsafe(16)
        place.mkdir()
        safe = "".join("_" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in name)
        return place / (safe.lstrip(".")[:100] or "file")

    def write(self, name: str, data: bytes) -> Path:
        path = self.path(name)
        path.write_bytes(data)
        return path

    def close(self) -> None:
        self._folder.cleanup()

    def _sweep(self) -> None:
        oldest = time.time() - self._max_age_s
        for place in Path(self._folder.name).iterdir():
            if place.stat().st_mtime < oldest:
                shutil.rmtree(place, ignore_errors=True)
