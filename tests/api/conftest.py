"""A real uvicorn on loopback around a scripted engine, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn
from prometheus_client import CollectorRegistry

from chattts_api.api.app import Server, create_app
from chattts_api.api.server import server_config
from chattts_api.settings import Settings
from chattts_api.synthesis import Synthesis
from chattts_api.voices.catalog import VoiceCatalog
from tests.fakes import PlainReader, ScriptedEngine

KEY = "sk-test-key-of-the-owner-0123456789"
SPEECH = {"model": "tts-1", "input": "Hello there.", "voice": "alloy"}


@dataclass(eq=False)
class Live:
    """A running server and what a test needs to talk to it and to look inside."""

    server: Server
    engine: ScriptedEngine
    port: int
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def at_rest(self) -> None:
        """Wait until nothing is inside the server or its engine."""
        async with asyncio.timeout(5):
            while self.server.admission.num_inside or self.engine.running:
                await asyncio.sleep(0.01)


StartServer = Callable[..., Awaitable[Live]]


def make_settings(**changes: Any) -> Settings:
    values: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "data_dir": "/nonexistent"}
    return Settings(**{**values, **changes})


@asynccontextmanager
async def running(server: Server, engine: ScriptedEngine) -> AsyncIterator[Live]:
    config = server_config(server, make_settings())
    listener = uvicorn.Server(config)
    task = asyncio.create_task(listener._serve())
    while not listener.started:
        assert not task.done(), task.exception()
        await asyncio.sleep(0.005)
    port = listener.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
        try:
            yield Live(server, engine, port, client)
        finally:
            engine.gate.set()
            listener.should_exit = True
            await client.aclose()
            await task
            await server.close()


@pytest.fixture
async def start() -> AsyncIterator[StartServer]:
    """Start servers with `await start(engine, **settings)`; they end with the test."""
    stack: list[Any] = []

    async def start_one(
        engine: ScriptedEngine | None = None,
        *,
        mount_ui: Any = None,
        **changes: Any,
    ) -> Live:
        engine = engine or ScriptedEngine()
        settings = make_settings(**changes)
        synthesis = Synthesis(PlainReader(), engine, timeout_s=float(settings.request_timeout))
        server = create_app(
            settings,
            synthesis,
            VoiceCatalog(),
            mount_ui=mount_ui,
            registry=CollectorRegistry(),
        )
        context = running(server, engine)
        live = await context.__aenter__()
        stack.append(context)
        return live

    yield start_one
    for context in reversed(stack):
        await context.__aexit__(None, None, None)
