"""uvicorn, set up for this product: bounded, quiet, and ending without cutting anybody off."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from types import FrameType
from typing import Final, Protocol

import uvicorn

from chattts_api.api.app import Server
from chattts_api.api.protocol import BoundedHttpProtocol, BoundedSocketProtocol

WS_MAX_SIZE: Final = 65_536
DRAIN_DELAY_S: Final = 0.5  # load balancers go on sending for a moment after readiness is gone
_TICK_S: Final = 0.05


class ServerSettings(Protocol):
    """The settings, as far as the listener needs them."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def drain_timeout(self) -> float: ...


class DrainingServer(uvicorn.Server):
    """Ends in steps: refuse new work, let what runs finish, then close.

    A second signal ends it at once. Unlike uvicorn's, it does not raise the signal again at the
    end, so that the caller can stop the engine and exit with status 0.
    """

    def __init__(self, config: uvicorn.Config, server: Server, drain_timeout_s: float) -> None:
        super().__init__(config)
        self._server = server
        self._drain_timeout_s = drain_timeout_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        admission = self._server.admission
        admission.drain()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while not self.force_exit:
            elapsed_s = loop.time() - began_s
            is_done = self._is_quiet() and elapsed_s >= DRAIN_DELAY_S
            if is_done or elapsed_s >= self._drain_timeout_s:
                break
            await asyncio.sleep(_TICK_S)
        await super().shutdown(sockets)
        await self._server.close()

    def _is_quiet(self) -> bool:
        """Nothing is being answered, and the engine speaks for nobody: the page has no request."""
        stats = self._server.services.synthesis.engine.stats()
        num_rows = stats.num_running + stats.num_waiting + stats.num_paused
        return self._server.admission.num_inside == 0 and num_rows == 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self.force_exit = True
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def server_config(server: Server, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        server.guard,
        host=settings.host,
        port=settings.port,
        http=BoundedHttpProtocol,
        ws=BoundedSocketProtocol,
        ws_max_size=WS_MAX_SIZE,
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        backlog=1024,
    )


async def serve(server: Server, settings: ServerSettings) -> None:
    """Listen until a signal. The engine is the caller's to start before and to stop after."""
    config = server_config(server, settings)
    await DrainingServer(config, server, settings.drain_timeout).serve()
