"""What both sockets share: messages in and out, their limits, and how a connection ends."""

import asyncio
import json
import logging
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from chattts_api.api.body import parse_json_object
from chattts_api.api.connection import ClientGoneError, break_off, send_or_give_up
from chattts_api.api.errors import envelope, internal_error
from chattts_api.api.guard.caller import Caller, caller_of, request_id_of
from chattts_api.api.guard.credentials import SUBPROTOCOL
from chattts_api.errors import InvalidRequestError, SpeechError

logger = logging.getLogger(__name__)

MAX_MESSAGE: Final = 32 * 1024
IDLE_S: Final = 60.0

NORMAL: Final = 1000
POLICY: Final = 1008
TOO_BIG: Final = 1009
INTERNAL: Final = 1011
RESTART: Final = 1012
IDLE: Final = 4408


class SocketEndedError(Exception):
    """The session is over; `code` is the close code, or None where the client has gone."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Socket:
    """One client's socket. Sends are serialised; a client that does not read is given up."""

    def __init__(self, websocket: WebSocket, *, stall_timeout_s: float) -> None:
        self._websocket = websocket
        self._stall_timeout_s = stall_timeout_s
        self._sending = asyncio.Lock()

    @property
    def caller(self) -> Caller:
        return caller_of(self._websocket.scope)

    @property
    def request_id(self) -> str:
        return request_id_of(self._websocket.scope)

    async def accept(self) -> None:
        offered = self._websocket.scope.get("subprotocols", [])
        await self._websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)

    async def receive(self) -> dict[str, object]:
        """The next message.

        Raises:
            InvalidRequestError: it is not a JSON object; the session may go on.
            SocketEndedError: the client has gone, or the message is too large.
        """
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise SocketEndedError(None)
        text = message.get("text")
        if text is None:
            raise InvalidRequestError("Messages are JSON in text frames.")
        if len(text.encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
            raise SocketEndedError(TOO_BIG)
        return parse_json_object(text)

    async def send(self, message: dict[str, object]) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        await self._send({"type": "websocket.send", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": data})

    async def close(self, code: int) -> None:
        if self._websocket.application_state is WebSocketState.CONNECTED:
            try:
                await self._send({"type": "websocket.close", "code": code})
            except ClientGoneError:
                self.drop()

    def drop(self) -> None:
        """Break the connection without a closing handshake."""
        break_off(self._websocket.scope)

    async def _send(self, message: dict[str, object]) -> None:
        async with self._sending:
            try:
                await send_or_give_up(self._websocket.send, message, self._stall_timeout_s)
            except (WebSocketDisconnect, RuntimeError):
                raise ClientGoneError from None


def told(error: Exception) -> SpeechError:
    """What a client hears of an exception; the unexpected ones are logged here."""
    if isinstance(error, SpeechError):
        return error
    logger.error("A socket's request failed in a way that nobody expected", exc_info=error)
    return internal_error()


def error_body(error: SpeechError) -> dict[str, object]:
    body: dict[str, object] = dict(envelope(error))
    return body
