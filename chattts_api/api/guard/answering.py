"""Answers on their way out: the headers that every one of them has, and refusals of both kinds."""

import json
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from chattts_api.api.errors import envelope, error_headers
from chattts_api.api.guard.caller import request_id_of
from chattts_api.api.guard.limits import Standing
from chattts_api.api.guard.origins import RawHeaders
from chattts_api.api.guard.receiving import BoundedBody, discard
from chattts_api.errors import SpeechError

TOO_LARGE: Final = 413
_SECURITY: Final[RawHeaders] = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]
_STARTS: Final = frozenset(
    {
        "http.response.start",
        "websocket.accept",
        "websocket.http.response.start",
    }
)


class Answer:
    """`send` for one request: adds the common headers, and knows what has been sent."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, cors: RawHeaders) -> None:
        self.status: int | None = None
        self.standing: Standing | None = None
        self.body: BoundedBody | None = None
        self._is_replaced = False
        self._scope = scope
        self._send = send
        self._receive = receive if scope["type"] == "http" else None
        request_id = request_id_of(scope).encode()
        self._headers: RawHeaders = [(b"x-request-id", request_id), *cors]

    @property
    def has_begun(self) -> bool:
        return self.status is not None

    async def __call__(self, message: Message) -> None:
        if self._is_replaced:
            return
        if message["type"] in _STARTS:
            if self.body is not None and self.body.error is not None:
                await self._replace(self.body.error)
                return
            message = {**message, "headers": self._complete(message.get("headers", []))}
            self.status = message.get("status", 101)
        elif message["type"] == "websocket.close" and not self.has_begun:
            self.status = 403
        await self._send(message)

    async def grant(self, headers: RawHeaders) -> None:
        """Say yes to a browser's question before its request."""
        self._headers += headers
        await self({"type": "http.response.start", "status": 204, "headers": []})
        await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, error: SpeechError, extra: RawHeaders | None = None) -> None:
        """Answer with an error before anything else is sent."""
        body = json.dumps(envelope(error)).encode()
        headers = [(k.lower().encode(), v.encode()) for k, v in error_headers(error).items()]
        headers.append((b"content-type", b"application/json"))
        await self.reply(error.status, body, [*headers, *(extra or [])])

    async def reply(self, status: int, body: bytes, headers: RawHeaders) -> None:
        kind = "websocket.http.response" if self._scope["type"] == "websocket" else "http.response"
        length = (b"content-length", str(len(body)).encode())
        if self._scope.get("method") == "HEAD":
            body = b""
        await self({"type": f"{kind}.start", "status": status, "headers": [*headers, length]})
        if status == TOO_LARGE and self._receive is not None:
            await self({"type": f"{kind}.body", "body": body, "more_body": True})
            await discard(self._receive)
            body = b""
        await self({"type": f"{kind}.body", "body": body, "more_body": False})

    async def _replace(self, error: SpeechError) -> None:
        self.body = None
        await self.refuse(error)
        self._is_replaced = True

    def _complete(self, headers: RawHeaders) -> RawHeaders:
        """An application's own CORS headers are dropped: the guard alone decides about origins."""
        kept = [(k, v) for k, v in headers if not k.lower().startswith(b"access-control-")]
        names = {k.lower() for k, _ in kept}
        return [
            *kept,
            *(h for h in _SECURITY if h[0] not in names),
            *self._headers,
            *_rate_headers(self.standing),
        ]


def _rate_headers(standing: Standing | None) -> RawHeaders:
    if standing is None:
        return []
    return [
        (b"x-ratelimit-limit-requests", str(standing.limit).encode()),
        (b"x-ratelimit-remaining-requests", str(standing.remaining).encode()),
        (b"x-ratelimit-reset-requests", _duration(standing.reset_s).encode()),
    ]


def _duration(seconds: float) -> str:
    """As OpenAI writes it: 1s, 6m0s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
