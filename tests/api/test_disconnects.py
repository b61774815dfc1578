"""Clients that leave, stall or dribble: their work ends, and nobody else notices."""

import asyncio
import contextlib
import json
import time
from typing import Any

import pytest

from chattts_api.api import protocol
from chattts_api.api.guard import layer
from chattts_api.errors import SpeechError
from tests.api.conftest import SPEECH, Live, StartServer
from tests.fakes import CHUNK_S, ScriptedEngine, ScriptedJob, tone

ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/audio/speech", {**SPEECH, "response_format": "pcm"}),
    ("/v1/audio/speech", {**SPEECH, "response_format": "pcm", "stream": False}),
    ("/v1/audio/speech", {**SPEECH, "stream_format": "sse"}),
    ("/tts", {"text": "Hello there."}),
    ("/v1/tts", {"text": "Hello there."}),
)


async def post_raw(
    live: Live, path: str, body: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port, limit=2**12)
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    writer.write(head.encode() + data)
    await writer.drain()
    return reader, writer


async def is_cut(reader: asyncio.StreamReader) -> None:
    """Assert that the server ends the connection, and says nothing before."""
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 2) == b""


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def outcome(live: Live, surface: str, kind: str) -> float:
    metric = live.server.services.metrics.outcomes.labels(surface, kind)
    return float(metric._value.get())


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=range(len(ROUTES)))
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("phase", ["before sound", "in the middle"])
async def test_leaving_ends_the_work(
    start: StartServer, path: str, body: dict[str, Any], how: str, phase: str
) -> None:
    engine = ScriptedEngine(pace_s=0.01, seconds=60)
    live = await start(engine)
    if phase == "before sound":
        engine.gate.clear()
    _, writer = await post_raw(live, path, body)
    await until(lambda: engine.jobs)
    if phase == "in the middle":
        await until(lambda: engine.jobs[0].num_chunks > 3)
    left_s = time.monotonic()
    if how == "rst":
        writer.transport.abort()
    else:
        writer.close()
    await until(lambda: not engine.running)
    assert time.monotonic() - left_s < 0.5
    await live.at_rest()
    assert engine.num_aborted == 1
    surface = "classic" if "tts" in path else "speech"
    assert outcome(live, surface, "cancelled") == 1
    assert outcome(live, surface, "ok") == 0


async def test_a_client_that_leaves_between_body_bytes(start: StartServer) -> None:
    live = await start()
    _, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await live.at_rest()
    assert not live.engine.jobs


async def test_a_reader_that_stalls_is_given_up(start: StartServer) -> None:
    async def flood(engine: ScriptedEngine, job: ScriptedJob) -> None:
        for _ in range(2000):
            engine.put(job, 0, tone(CHUNK_S), is_last=False)
            await asyncio.sleep(0)
        await asyncio.sleep(60)

    engine = ScriptedEngine(script=flood)
    live = await start(engine, stall_timeout=0.3)
    reader, writer = await post_raw(live, "/v1/audio/speech", ROUTES[0][1])
    await until(lambda: engine.num_aborted == 1)
    await live.at_rest()
    got = b""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(2**16):
            got += data
    assert got.startswith(b"HTTP/1.1 200")
    assert not got.endswith(b"0\r\n\r\n")
    writer.transport.abort()


async def test_dribbled_headers_are_cut_off(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEADER_TIMEOUT_S", 0.3)
    live = await start()
    silent_reader, silent = await asyncio.open_connection("127.0.0.1", live.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    began_s = time.monotonic()

    async def dribble() -> None:
        for byte in b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(dribble())
    for stream in (reader, silent_reader):
        await is_cut(stream)
    assert 0.2 < time.monotonic() - began_s < 1.5
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for stream_writer in (writer, silent):
        stream_writer.transport.abort()
    assert (await live.client.get("/health/live")).status_code == 200


async def test_a_second_request_may_dribble_no_longer(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEADER_TIMEOUT_S", 0.3)
    live = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
    writer.write(b"GET /hea")
    await is_cut(reader)
    writer.transport.abort()


async def test_a_dribbled_body_is_a_408(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer, "BODY_TIMEOUT_S", 0.2)
    live = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    answer = await asyncio.wait_for(reader.readuntil(b"}}"), 2)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in answer
    writer.transport.abort()


async def test_many_short_lived_clients_leave_nothing_behind(start: StartServer) -> None:
    engine = ScriptedEngine(pace_s=0.01, seconds=60)
    live = await start(engine)

    async def impatient(number: int) -> None:
        _, writer = await post_raw(live, *ROUTES[number % len(ROUTES)])
        await asyncio.sleep(0.02 * (number % 7))
        writer.transport.abort()

    await asyncio.gather(*(impatient(n) for n in range(60)))
    await live.at_rest()
    assert engine.num_finished == 0
    assert engine.num_aborted == len(engine.jobs)
    engine.seconds = 0.2
    answer = await live.client.post("/v1/audio/speech", json=SPEECH)
    assert answer.status_code == 200


async def test_a_failing_request_is_not_a_cancelled_one(start: StartServer) -> None:
    async def fail(engine: ScriptedEngine, job: ScriptedJob) -> None:
        raise SpeechError("It broke.")

    live = await start(ScriptedEngine(script=fail))
    assert (await live.client.post("/v1/audio/speech", json=SPEECH)).status_code == 500
    assert outcome(live, "speech", "failed") == 1
