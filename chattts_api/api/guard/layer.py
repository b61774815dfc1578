"""The guard: one ASGI layer in front of every route, mount, socket and page.

head -> host -> CORS question -> open? -> caller -> origin -> rate -> concurrency -> body -> app
"""

import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from chattts_api.api.errors import internal_error
from chattts_api.api.guard.addresses import Proxies, host_name, is_loopback
from chattts_api.api.guard.answering import Answer
from chattts_api.api.guard.caller import STATE_KEY, Caller
from chattts_api.api.guard.credentials import Authenticator, WrongKeyError
from chattts_api.api.guard.limits import RateLimits
from chattts_api.api.guard.login import login_answer, wants_page
from chattts_api.api.guard.origins import Origins
from chattts_api.api.guard.policy import Policy, changes_something
from chattts_api.api.guard.receiving import BoundedBody, check_body_headers, check_head
from chattts_api.errors import (
    ForbiddenError,
    InvalidApiKeyError,
    OverloadedError,
    RateLimitedError,
    SpeechError,
)
from chattts_api.logs import request_id_var

logger = logging.getLogger(__name__)

BODY_TIMEOUT_S: Final = 30.0
MAX_SOCKETS: Final = 256
MAX_CALLER_SOCKETS: Final = 64
_OWN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True, eq=False)
class GuardParts:
    """What the guard decides with.

    Attributes:
        is_private: nobody but this machine's own users is meant: a request must name it by a
            loopback name, or a web page elsewhere could reach it through a name of its own.
    """

    authenticator: Authenticator
    limits: RateLimits
    origins: Origins
    proxies: Proxies
    policy: Policy
    is_private: bool = False


class Guard:
    """Wraps an ASGI application. Knows no route but those of `Policy`."""

    def __init__(self, app: ASGIApp, parts: GuardParts) -> None:
        self.app = app
        self._parts = parts
        self._busy: Counter[str] = Counter()
        self._sockets: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id
        request_id_var.set(request_id)
        answer = Answer(scope, receive, send, self._parts.origins.answer_headers(headers))
        began_s = time.monotonic()
        try:
            await self._guarded(scope, headers, receive, answer)
        except SpeechError as error:
            if not answer.has_begun:
                await self._refuse(scope, headers, answer, error)
        except Exception:
            logger.exception("A request failed in a way that nobody expected")
            if not answer.has_begun:
                await answer.refuse(internal_error())
        finally:
            _log(scope, answer, time.monotonic() - began_s)

    async def _guarded(
        self, scope: Scope, headers: Headers, receive: Receive, answer: Answer
    ) -> None:
        parts = self._parts
        check_head(scope)
        self._check_host(headers)
        if (granted := parts.origins.preflight_headers(scope, headers)) is not None:
            await answer.grant(granted)
            return
        address = parts.proxies.client_of(scope, headers)
        scope["state"]["is_secure"] = parts.proxies.is_secure(scope, headers)
        if parts.policy.is_open(scope):
            caller = Caller(bucket=f"address:{address}")
        else:
            caller = self._identify(scope, headers, address)
            self._check_origin(scope, headers, caller)
            if parts.policy.is_counted(scope):
                answer.standing = await parts.limits.charge_request(caller)
        scope["state"].update({STATE_KEY: caller, "address": address})
        with self._at_once(caller), self._socket_place(scope, caller):
            await self.app(scope, self._bounded(scope, headers, receive, answer), answer)

    def _identify(self, scope: Scope, headers: Headers, address: str) -> Caller:
        try:
            return self._parts.authenticator.identify(scope, headers, address)
        except WrongKeyError:
            self._parts.limits.charge_wrong_key(address)
            raise InvalidApiKeyError("This key is not valid.") from None

    def _check_host(self, headers: Headers) -> None:
        if not self._parts.is_private:
            return
        name = host_name(headers.get("host", "localhost"))
        if name is None or not is_loopback(name):
            raise ForbiddenError(
                "This server answers to localhost only. Set CHATTTS_API_KEYS to open it to others."
            )

    def _check_origin(self, scope: Scope, headers: Headers, caller: Caller) -> None:
        is_sent_by_browser = caller.by_cookie or caller.owner is None
        is_socket = scope["type"] == "websocket"
        if not changes_something(scope) or not (is_sent_by_browser or is_socket):
            return
        if not self._parts.origins.is_allowed(headers):
            raise ForbiddenError("Pages of this origin may not call. See CHATTTS_CORS_ORIGINS.")

    def _bounded(self, scope: Scope, headers: Headers, receive: Receive, answer: Answer) -> Receive:
        if scope["type"] != "http":
            return receive
        max_bytes = self._parts.policy.max_body(scope)
        check_body_headers(headers, max_bytes)
        answer.body = BoundedBody(receive, max_bytes=max_bytes, timeout_s=BODY_TIMEOUT_S)
        return answer.body

    @contextmanager
    def _at_once(self, caller: Caller) -> Iterator[None]:
        limit = caller.limits.concurrency
        if limit is not None and self._busy[caller.bucket] >= limit:
            raise RateLimitedError(
                f"Only {limit} requests at once are allowed with this key.", retry_after_s=1
            )
        self._busy[caller.bucket] += 1
        try:
            yield
        finally:
            self._busy[caller.bucket] -= 1
            if not self._busy[caller.bucket]:
                del self._busy[caller.bucket]

    @contextmanager
    def _socket_place(self, scope: Scope, caller: Caller) -> Iterator[None]:
        """Sockets stay open for long, so their number is bounded."""
        if scope["type"] != "websocket":
            yield
            return
        if self._sockets.total() >= MAX_SOCKETS:
            raise OverloadedError("Too many sockets are open.", retry_after_s=5)
        if self._sockets[caller.bucket] >= MAX_CALLER_SOCKETS:
            raise RateLimitedError("Too many of your sockets are open.", retry_after_s=5)
        self._sockets[caller.bucket] += 1
        try:
            yield
        finally:
            self._sockets[caller.bucket] -= 1
            if not self._sockets[caller.bucket]:
                del self._sockets[caller.bucket]

    async def _refuse(
        self, scope: Scope, headers: Headers, answer: Answer, error: SpeechError
    ) -> None:
        if isinstance(error, InvalidApiKeyError) and wants_page(scope, headers):
            await login_answer(answer, str(scope["path"]))
        else:
            await answer.refuse(error)


def _request_id(headers: Headers) -> str:
    own = headers.get("x-request-id", "")
    return own if _OWN_ID.fullmatch(own) else f"req_{uuid.uuid4().hex}"


def _log(scope: Scope, answer: Answer, elapsed_s: float) -> None:
    """One line a request. The route stands for the path, which may hold a secret link."""
    route = getattr(scope.get("route"), "path", None) or "unmatched"
    caller = scope["state"].get(STATE_KEY)
    level = logging.DEBUG if route.startswith("/health") else logging.INFO
    logger.log(
        level,
        "%s %s",
        scope.get("method", "WS"),
        route,
        extra={
            "status": answer.status,
            "elapsed_ms": round(elapsed_s * 1000, 1),
            "caller": getattr(caller, "owner", None),
        },
    )
