"""The login cookie: which key logged in and until when, signed by the server.

It names no key. A key that is revoked or expires takes its cookies with it.
"""

import base64
import hmac
import os
import secrets
import time
from pathlib import Path
from typing import Final

from chattts_api.api.guard.key_file import StoredKey
from chattts_api.api.guard.keys import KeyRing

COOKIE_NAME: Final = "chattts_login"
LIFETIME_S: Final = 12 * 3600
_SECRET_SIZE: Final = 32
_MAX_DIGITS: Final = 12


class CookieSigner:
    """Issues and reads login cookies."""

    def __init__(self, secret: bytes, keys: KeyRing) -> None:
        self._secret = secret
        self._keys = keys

    def issue(self, entry: StoredKey) -> str:
        expires_s = int(time.time()) + LIFETIME_S
        return f"{expires_s}.{self._signature(entry, expires_s)}"

    def read(self, cookie: str) -> StoredKey | None:
        """The key that logged in, while both it and the cookie are valid."""
        expires, _, signature = cookie.partition(".")
        if not cookie.isascii() or not expires.isdigit() or len(expires) > _MAX_DIGITS:
            return None
        if time.time() >= int(expires):
            return None
        found: StoredKey | None = None
        for entry in self._keys.valid():
            if hmac.compare_digest(self._signature(entry, int(expires)), signature):
                found = entry
        return found

    def _signature(self, entry: StoredKey, expires_s: int) -> str:
        # The key's hash is signed and not shown: a short key could be guessed from it.
        digest = hmac.digest(self._secret, f"{entry.sha256}.{expires_s}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def load_secret(path: Path | None) -> bytes:
    """The secret that signs cookies, kept in a file so that logins outlive a restart."""
    fresh = secrets.token_bytes(_SECRET_SIZE)
    if path is None:
        return fresh
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        stored = path.read_bytes()
        return stored if len(stored) == _SECRET_SIZE else fresh
    except OSError:
        return fresh
    with os.fdopen(handle, "wb") as file:
        file.write(fresh)
    return fresh
