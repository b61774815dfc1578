"""Finished sounds that are fetched by link: unguessable, short-lived, bounded in bytes."""

import re
import secrets
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chattts_api.errors import NotFoundError, StorageFullError

LIFETIME_S: Final = 600.0
GRACE_S: Final = 60.0  # a file outlives its link, so that who has just asked still gets it
MAX_BYTES: Final = 1 << 30
_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class _Item:
    path: Path
    owner: str | None
    num_bytes: int
    expires_s: float


class DownloadShelf:
    """Keeps files in a private folder that goes with the server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._folder: Path | None = None
        self._items: OrderedDict[str, _Item] = OrderedDict()
        self._num_bytes = 0

    def put(self, data: bytes, owner: str | None) -> str:
        """Keep a file and return its id. Raises StorageFullError."""
        self._sweep()
        if self._num_bytes + len(data) > MAX_BYTES:
            raise StorageFullError("There is no room for files. Try again later.", retry_after_s=60)
        name = secrets.token_urlsafe(16)
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="chattts-downloads-"))
            path = self._folder / name
            path.write_bytes(data)
        except OSError:
            raise StorageFullError("The file could not be kept.", retry_after_s=60) from None
        self._items[name] = _Item(path, owner, len(data), self._clock() + LIFETIME_S)
        self._num_bytes += len(data)
        return name

    def get(self, name: str, owner: str | None) -> Path:
        """Where a file lies. Raises NotFoundError; the id alone is ever used to look it up."""
        self._sweep()
        item = self._items.get(name) if _ID.fullmatch(name) else None
        if item is None or item.owner != owner or self._clock() >= item.expires_s:
            raise NotFoundError("There is no such file. Links live for ten minutes.")
        return item.path

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        self._items.clear()
        self._num_bytes = 0

    def _sweep(self) -> None:
        now_s = self._clock()
        while self._items:
            name, oldest = next(iter(self._items.items()))
            if now_s < oldest.expires_s + GRACE_S:
                return
            del self._items[name]
            self._num_bytes -= oldest.num_bytes
            oldest.path.unlink(missing_ok=True)
