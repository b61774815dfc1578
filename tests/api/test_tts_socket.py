"""WS /ws/tts over a real socket."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from chattts_api.errors import GenerationFailedError
from tests.api.conftest import Live, StartServer
from tests.fakes import CHUNK_S, ScriptedEngine, ScriptedJob, tone


def open_socket(live: Live) -> connect:
    return connect(f"ws://127.0.0.1:{live.port}/ws/tts", proxy=None)


async def speak(ws: ClientConnection, req_id: str, text: str = "Hello.", **fields: Any) -> None:
    await ws.send(json.dumps({"req_id": req_id, "text": text, **fields}))


async def next_json(ws: ClientConnection) -> dict[str, Any]:
    """The next text message; audio is passed over."""
    while isinstance(message := await asyncio.wait_for(ws.recv(), 5), bytes):
        pass
    return json.loads(message)


async def read_one(ws: ClientConnection) -> tuple[dict[str, Any], list[bytes], dict[str, Any]]:
    """A start, its frames, its end."""
    start = json.loads(await asyncio.wait_for(ws.recv(), 5))
    assert start["type"] == "start", start
    frames: list[bytes] = []
    while isinstance(message := await asyncio.wait_for(ws.recv(), 5), bytes):
        frames.append(message)
    return start, frames, json.loads(message)


async def test_one_request_is_start_frames_end(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await speak(ws, "a1", "One. Two.", seed=5)
        begun, frames, end = await read_one(ws)
    assert begun == {
        "type": "start", "req_id": "a1", "stream": 1, "sample_rate": 24000, "channels": 1,
        "format": "s16le", "frame_ms": 20, "engine": "espeak", "seed": 5,
    }  # fmt: skip
    assert all(len(frame) == 960 for frame in frames[:-1])
    assert 0 < len(frames[-1]) <= 960
    assert len(frames[-1]) % 2 == 0
    assert end["type"] == "end"
    assert end["frames"] == len(frames)
    assert end["seconds"] == pytest.approx(sum(map(len, frames)) / 48_000, abs=0.02)
    assert end["finish_reason"] == "stop"
    assert end["text_dropped"] == 0


@pytest.mark.parametrize(("rate", "frame_bytes"), [(8000, 320), (22050, 882), (48000, 1920)])
async def test_frames_of_other_rates(start: StartServer, rate: int, frame_bytes: int) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await speak(ws, "a1", sample_rate=rate)
        _, frames, _ = await read_one(ws)
    assert {len(frame) for frame in frames[:-1]} == {frame_bytes}


async def test_raw_requests_do_not_mix(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.005))
    async with open_socket(live) as ws:
        for n in range(12):
            await speak(ws, f"r{n}")
        seen = set()
        for _ in range(12):
            begun, frames, end = await read_one(ws)
            assert end["req_id"] == begun["req_id"]
            assert end["frames"] == len(frames)
            seen.add(begun["req_id"])
    assert seen == {f"r{n}" for n in range(12)}
    assert max(len(live.engine.jobs), 0) == 12


async def test_tagged_requests_interleave(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.005, seconds=1.0))
    async with open_socket(live) as ws:
        await ws.send(json.dumps({"type": "config", "framing": "tagged"}))
        for n in range(4):
            await speak(ws, f"r{n}")
        order, sizes, ends = [], {}, 0
        while ends < 4:
            message = await asyncio.wait_for(ws.recv(), 5)
            if isinstance(message, bytes):
                stream = int.from_bytes(message[:4], "big")
                order.append(stream)
                sizes[stream] = sizes.get(stream, 0) + len(message) - 4
            else:
                ends += json.loads(message)["type"] == "end"
    assert set(sizes) == {1, 2, 3, 4}
    assert min(sizes.values()) == max(sizes.values())
    changes = sum(a != b for a, b in pairwise(order))
    assert changes > 8


async def test_cancel_stops_the_work(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=60))
    async with open_socket(live) as ws:
        await speak(ws, "a1")
        await ws.recv()
        await ws.recv()
        await ws.send(json.dumps({"type": "cancel", "req_id": "a1"}))
        while (message := await next_json(ws))["type"] != "cancelled":
            pass
        assert message == {"type": "cancelled", "req_id": "a1"}
        await live.at_rest()
        assert live.engine.num_aborted == 1
        live.engine.seconds = 0.2
        await speak(ws, "a1")
        _, _, end = await read_one(ws)
        assert end["type"] == "end"


async def test_bad_messages_keep_the_session(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=1))
    cases: list[tuple[str | bytes, str]] = [
        ("{", "invalid_json"),
        ("[]", "invalid_value"),
        (b"\0\1", "invalid_value"),
        (json.dumps({"type": "sing", "req_id": "x"}), "invalid_value"),
        (json.dumps({"text": "no id"}), "invalid_value"),
        (json.dumps({"req_id": {"a": 1}, "text": "x"}), "invalid_value"),
        (json.dumps({"req_id": "x"}), "invalid_value"),
        (json.dumps({"req_id": "x", "text": 123}), "invalid_value"),
        (json.dumps({"req_id": "x", "text": "…"}), "empty_input"),
        (json.dumps({"req_id": "x", "text": "a", "speed": 9}), "invalid_value"),
        (json.dumps({"req_id": "x", "text": "a", "voice": "nobody"}), "voice_not_found"),
        (json.dumps({"type": "cancel", "req_id": "none"}), "not_found"),
        (json.dumps({"type": "config", "framing": "tagged"}), "invalid_value"),
    ]
    async with open_socket(live) as ws:
        for text, code in cases:
            await ws.send(text)
            message = await next_json(ws)
            assert message["type"] == "error", text
            assert message["error"]["code"] == code, text
            assert set(message["error"]) == {"message", "type", "param", "code"}
        await speak(ws, "ok")
        _, _, end = await read_one(ws)
        assert end["type"] == "end"


async def test_a_missing_text_names_text(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await ws.send(json.dumps({"req_id": "x"}))
        assert (await next_json(ws))["error"]["param"] == "text"


async def test_a_req_id_in_use_is_a_conflict(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=2))
    async with open_socket(live) as ws:
        await speak(ws, "a1")
        await ws.recv()
        await speak(ws, "a1")
        message = await next_json(ws)
        assert (message["type"], message["error"]["code"]) == ("error", "conflict")


async def fail_after_sound(engine: ScriptedEngine, job: ScriptedJob) -> None:
    for _ in range(5):
        engine.put(job, 0, tone(CHUNK_S), is_last=False)
    raise GenerationFailedError("No speech came of this text.")


async def test_a_failure_after_sound_is_told_and_the_connection_breaks(start: StartServer) -> None:
    live = await start(ScriptedEngine(script=fail_after_sound))
    async with open_socket(live) as ws:
        await speak(ws, "a1")
        begun, _, end = await read_one(ws)
        assert begun["req_id"] == end["req_id"] == "a1"
        assert end["type"] == "error"
        assert end["error"]["code"] == "generation_failed"
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
        assert closed.value.rcvd is None


async def test_a_client_that_leaves_frees_its_rows(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=60))
    async with open_socket(live) as ws:
        for n in range(10):
            await speak(ws, f"r{n}")
        await ws.recv()
        ws.transport.abort()
    await live.at_rest()
    assert live.engine.num_aborted == 8


async def test_a_large_message_ends_the_session(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await ws.send(json.dumps({"req_id": "a", "text": "x" * 33_000}))
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_draining_lets_the_running_request_end(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=1))
    async with open_socket(live) as ws:
        await speak(ws, "a1")
        await ws.recv()
        live.server.admission.drain()
        while (message := await next_json(ws))["type"] != "end":
            pass
        assert message["req_id"] == "a1"
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
