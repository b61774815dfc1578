"""uvicorn's protocols with what they lack: a deadline for headers, a bound on them, and abort.

The deadline for bodies is the guard's (`guard/receiving.py`).
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from chattts_api.api.guard.policy import MAX_HEADERS, MAX_URL

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState
    from websockets.http11 import Request

HEADER_TIMEOUT_S: Final = 10.0
_MAX_HEAD: Final = 2 * (MAX_HEADERS + MAX_URL)  # beyond it nobody waits for the guard's own answer


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers do not arrive in time and measure."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self._num_head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_timer is None and self._is_between_requests():
            self._await_head()
        super().data_received(data)
        if self._head_timer is not None:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > _MAX_HEAD and not self.transport.is_closing():
                self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        # Not a dict as the specification wants, but what only `connection.break_off` asks for.
        self.scope["extensions"] = {"chattts.abort": self._abort}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        self._head_arrived()
        super().on_headers_complete()

    def handle_websocket_upgrade(self) -> None:
        self._head_arrived()
        super().handle_websocket_upgrade()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._num_head_bytes = 0
        self._head_timer = self.loop.call_later(HEADER_TIMEOUT_S, self._give_up)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self._abort()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class BoundedSocketProtocol(WebSocketsSansIOProtocol):
    """Lets the application drop a socket whose client does not read."""

    def handle_connect(self, event: "Request") -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"]["chattts.abort"] = self._abort  # type: ignore[assignment]

    def _abort(self) -> None:
        self.transport.abort()
