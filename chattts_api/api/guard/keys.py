"""The keys that open the server: from the settings, and from a file that may change meanwhile."""

import hmac
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from chattts_api.api.guard.key_file import StoredKey, hash_key, read_keys
from chattts_api.errors import SetupError

logger = logging.getLogger(__name__)

CHECK_EVERY_S: Final = 1.0
MAX_KEY_LENGTH: Final = 512
_Stamp = tuple[int, int, int]


class KeyRing:
    """Knows every valid key by its hash.

    Args:
        keys: from the settings; they are the owner's, so they may do everything.
        path: a key file, read again within a second of a change. A broken edit leaves the last
            good keys in force; a file that is gone leaves none.

    Raises:
        SetupError: the file cannot be read or holds a bad line.
    """

    def __init__(
        self,
        keys: Sequence[str] = (),
        path: Path | None = None,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._fixed = tuple(
            StoredKey(name=f"settings-{n}", sha256=hash_key(key), admin=True)
            for n, key in enumerate(keys, start=1)
        )
        self._path = path
        self._wall_clock = wall_clock
        self._stamp = _stamp(path)
        self._from_file = read_keys(path) if path is not None else ()
        self._checked_s = time.monotonic()

    @property
    def is_required(self) -> bool:
        """Whether callers need a key at all."""
        return bool(self._fixed) or self._path is not None

    def find(self, key: str) -> StoredKey | None:
        """The entry of a key that is valid now."""
        sha256 = hash_key(key[: MAX_KEY_LENGTH + 1])
        found: StoredKey | None = None
        # Every entry is compared, so that the time tells nothing about which one is near.
        for entry in self.valid():
            if hmac.compare_digest(entry.sha256, sha256):
                found = entry
        return found

    def valid(self) -> list[StoredKey]:
        """The entries that have not expired."""
        self._reload_on_change()
        return [entry for entry in (*self._fixed, *self._from_file) if self._is_valid(entry)]

    def _is_valid(self, entry: StoredKey) -> bool:
        expires_s = entry.expires_s
        return expires_s is None or self._wall_clock() < expires_s

    def _reload_on_change(self) -> None:
        now_s = time.monotonic()
        if self._path is None or now_s - self._checked_s < CHECK_EVERY_S:
            return
        self._checked_s = now_s
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        if stamp is None:
            logger.error("The key file is gone: its keys are refused")
            self._from_file = ()
            return
        try:
            self._from_file = read_keys(self._path)
        except SetupError as error:
            logger.error("A change of the key file is not used: %s", error)  # noqa: TRY400
            return
        logger.info("The key file was read again: %d keys", len(self._from_file))


def _stamp(path: Path | None) -> _Stamp | None:
    try:
        stat = path.stat() if path is not None else None
    except OSError:
        return None
    return None if stat is None else (stat.st_mtime_ns, stat.st_size, stat.st_ino)
