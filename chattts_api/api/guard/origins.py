"""Which web pages may call: the server's own, and those on the allow-list (CORS)."""

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from chattts_api.api.guard.addresses import is_same_origin

_EXPOSED: Final = (
    "x-request-id, x-engine, x-seed, x-text-dropped, retry-after, x-ratelimit-limit-requests, "
    "x-ratelimit-remaining-requests, x-ratelimit-reset-requests"
)
_MAX_AGE_S: Final = "600"
RawHeaders = list[tuple[bytes, bytes]]


class Origins:
    """The allow-list. An entry is a whole origin, `https://chat.example.com`, or `*` for all."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    def is_allowed(self, headers: Headers) -> bool:
        """Whether the page that asks, if it is one, may."""
        origin = headers.get("origin")
        if origin is None:
            return True
        return self._is_listed(origin) or is_same_origin(origin, headers.get("host", ""))

    def answer_headers(self, headers: Headers) -> RawHeaders:
        """What lets the page read the answer. Never for credentials: a key is sent by script."""
        origin = headers.get("origin")
        if origin is None or not self._is_listed(origin):
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED.encode()),
            (b"vary", b"Origin"),
        ]

    def preflight_headers(self, scope: Scope, headers: Headers) -> RawHeaders | None:
        """What is added to the answer of a browser's question, or None where it asks none."""
        asks = scope["type"] == "http" and scope["method"] == "OPTIONS"
        if not asks or "access-control-request-method" not in headers:
            return None
        if not self.answer_headers(headers):
            return None
        wanted = headers.get("access-control-request-headers", "authorization, content-type")
        return [
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", wanted.encode("latin-1")),
            (b"access-control-max-age", _MAX_AGE_S.encode()),
        ]

    def _is_listed(self, origin: str) -> bool:
        return "*" in self._allowed or origin.lower() in self._allowed
