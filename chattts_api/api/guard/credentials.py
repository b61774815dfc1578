"""Finding out who calls: bearer key, login cookie, or a socket's subprotocol."""

import base64
import binascii
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from chattts_api.api.guard.caller import Caller, Limits
from chattts_api.api.guard.cookie import COOKIE_NAME, CookieSigner
from chattts_api.api.guard.key_file import StoredKey
from chattts_api.api.guard.keys import KeyRing
from chattts_api.errors import InvalidApiKeyError

SUBPROTOCOL: Final = "chattts"
_BEARER_PROTOCOL: Final = "bearer."


class WrongKeyError(Exception):
    """A key was given and it is not valid."""


@dataclass(frozen=True, slots=True, eq=False)
class Authenticator:
    """Turns a request's credentials into its caller.

    Attributes:
        anonymous: limits of callers where no keys are configured.
        keyed: limits of a key that has no figures of its own.
    """

    keys: KeyRing
    cookies: CookieSigner
    anonymous: Limits
    keyed: Limits

    def identify(self, scope: Scope, headers: Headers, address: str) -> Caller:
        """Raises InvalidApiKeyError where no key is given, WrongKeyError where a wrong one is."""
        if not self.keys.is_required:
            return Caller(bucket=f"address:{address}", limits=self.anonymous, is_admin=True)
        given = headers.getlist("authorization")
        if given:
            return self._caller(self._by_bearer(given))
        if scope["type"] == "websocket" and (key := _protocol_key(scope)) is not None:
            return self._caller(self._found(key))
        if (entry := self._by_cookie(headers)) is not None:
            return self._caller(entry, by_cookie=True)
        raise InvalidApiKeyError("A key is needed: Authorization: Bearer KEY.")

    def login(self, key: str) -> str:
        """A cookie for a key. Raises WrongKeyError."""
        return self.cookies.issue(self._found(key))

    def _by_bearer(self, given: list[str]) -> StoredKey:
        scheme, _, key = given[0].partition(" ")
        if len(given) != 1 or scheme.lower() != "bearer" or not key.strip():
            raise InvalidApiKeyError("A key is needed: Authorization: Bearer KEY.")
        return self._found(key.strip())

    def _found(self, key: str) -> StoredKey:
        entry = self.keys.find(key)
        if entry is None:
            raise WrongKeyError
        return entry

    def _by_cookie(self, headers: Headers) -> StoredKey | None:
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE_NAME)
        except CookieError:
            return None
        return self.cookies.read(morsel.value) if morsel is not None else None

    def _caller(self, entry: StoredKey, *, by_cookie: bool = False) -> Caller:
        limits = Limits(
            requests=entry.requests or self.keyed.requests,
            characters=entry.characters or self.keyed.characters,
            concurrency=entry.concurrency or self.keyed.concurrency,
        )
        return Caller(
            bucket=f"key:{entry.sha256[:32]}",
            limits=limits,
            owner=entry.name,
            is_admin=entry.admin,
            by_cookie=by_cookie,
        )


def _protocol_key(scope: Scope) -> str | None:
    for protocol in scope.get("subprotocols", ()):
        if protocol.startswith(_BEARER_PROTOCOL):
            encoded = protocol[len(_BEARER_PROTOCOL) :]
            try:
                padded = encoded + "=" * (-len(encoded) % 4)
                return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
            except (binascii.Error, ValueError):
                return ""
    return None
