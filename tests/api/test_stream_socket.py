"""WS /v1/audio/speech/stream over a real socket."""

import asyncio
import json
import time
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from chattts_api.api import stream_socket
from chattts_api.errors import GenerationFailedError
from tests.api.conftest import Live, StartServer
from tests.fakes import CHUNK_S, ScriptedEngine, ScriptedJob, tone


def open_socket(live: Live) -> connect:
    return connect(f"ws://127.0.0.1:{live.port}/v1/audio/speech/stream", proxy=None)


async def send(ws: ClientConnection, kind: str, **fields: Any) -> None:
    await ws.send(json.dumps({"type": kind, **fields}))


async def configured(ws: ClientConnection, **fields: Any) -> None:
    await send(ws, "session.config", **fields)
    assert json.loads(await asyncio.wait_for(ws.recv(), 5))["type"] == "session.created"


async def read_all(ws: ClientConnection) -> tuple[list[dict[str, Any]], bytes]:
    """Every message to session.done, and the joined audio."""
    events: list[dict[str, Any]] = []
    audio = b""
    while not events or events[-1]["type"] != "session.done":
        message = await asyncio.wait_for(ws.recv(), 5)
        if isinstance(message, bytes):
            audio += message
        else:
            events.append(json.loads(message))
    return events, audio


async def test_fragments_are_spoken_sentence_by_sentence(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws, seed=3)
        for fragment in ("Hel", "lo there. How", " are you? And", " more"):
            await send(ws, "input.text", text=fragment)
        await send(ws, "input.done")
        events, audio = await read_all(ws)
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1000
    starts = [e for e in events if e["type"] == "audio.start"]
    dones = [e for e in events if e["type"] == "audio.done"]
    assert [e["text"] for e in starts] == ["Hello there.", "How are you?", "And more"]
    assert [e["segment"] for e in starts] == [0, 1, 2]
    assert starts[0]["format"] == "pcm"
    assert (starts[0]["sample_rate"], starts[0]["channels"]) == (24000, 1)
    assert sum(e["total_bytes"] for e in dones) == len(audio)
    assert not any(e["error"] for e in dones)
    assert events[-1]["seconds"] == pytest.approx(len(audio) / 48_000, abs=0.05)
    assert events[-1]["usage"]["total_tokens"] > 0
    assert {job.stream.job.seed for job in live.engine.jobs} == {3}


async def test_a_sentence_is_spoken_before_the_text_is_done(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="First one. Second")
        message = json.loads(await asyncio.wait_for(ws.recv(), 2))
        assert message["type"] == "audio.start"
        assert message["text"] == "First one."


async def test_flush_speaks_at_once(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="no end mark")
        await send(ws, "input.flush")
        message = json.loads(await asyncio.wait_for(ws.recv(), 2))
        assert message["text"] == "no end mark"


async def test_a_complete_clause_is_spoken_after_a_second(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        began_s = time.monotonic()
        await send(ws, "input.text", text="as soon as it is ready, and the rest")
        message = json.loads(await asyncio.wait_for(ws.recv(), 4))
        assert message["type"] == "audio.start"
        assert message["text"].startswith("as soon as it is ready")
        assert 0.8 < time.monotonic() - began_s < 2.5


async def test_one_file_for_the_session(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws, response_format="wav")
        await send(ws, "input.text", text="One. Two. Three.")
        await send(ws, "input.done")
        _, audio = await read_all(ws)
    assert audio.startswith(b"RIFF")
    assert audio.count(b"RIFF") == 1


async def test_an_unspeakable_sentence_fails_alone(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="One. ")
        await send(ws, "input.flush")
        await send(ws, "input.text", text="… ")
        await send(ws, "input.flush")
        await send(ws, "input.text", text="Two.")
        await send(ws, "input.done")
        events, _ = await read_all(ws)
    kinds = [e["type"] for e in events]
    assert kinds.count("audio.done") == 2
    errors = [e for e in events if e["type"] == "error"]
    assert [e["error"]["code"] for e in errors] == ["empty_input"]
    assert errors[0]["partial_audio"] is False


async def test_bad_messages_keep_the_session(start: StartServer) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        for text in ("{", "[]", '{"type": "sing"}', '{"type": "input.text", "text": 123}'):
            await ws.send(text)
            message = json.loads(await asyncio.wait_for(ws.recv(), 5))
            assert message["type"] == "error"
            assert set(message["error"]) == {"message", "type", "param", "code"}
        await send(ws, "input.text", text="Still here.")
        await send(ws, "input.done")
        events, _ = await read_all(ws)
    assert events[-1]["type"] == "session.done"


BAD_CONFIGS: list[dict[str, Any]] = [
    {"type": "input.text", "text": "a"},
    {"type": "session.config", "voice": "nobody"},
    {"type": "session.config", "speed": 9},
    {"type": "session.config", "response_format": "ogg"},
]


@pytest.mark.parametrize("message", BAD_CONFIGS)
async def test_a_bad_config_ends_the_session(start: StartServer, message: dict[str, Any]) -> None:
    live = await start()
    async with open_socket(live) as ws:
        await ws.send(json.dumps(message))
        told = json.loads(await asyncio.wait_for(ws.recv(), 5))
        assert told["type"] == "error"
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def fail_after_sound(engine: ScriptedEngine, job: ScriptedJob) -> None:
    engine.put(job, 0, tone(CHUNK_S), is_last=False)
    raise GenerationFailedError("No speech came of this text.")


async def test_a_failure_after_sound_breaks_the_connection(start: StartServer) -> None:
    live = await start(ScriptedEngine(script=fail_after_sound))
    events: list[dict[str, Any]] = []

    async def read(ws: ClientConnection) -> None:
        while True:
            message = await asyncio.wait_for(ws.recv(), 5)
            if isinstance(message, str):
                events.append(json.loads(message))

    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="One. ")
        await send(ws, "input.done")
        with pytest.raises(ConnectionClosed) as closed:
            await read(ws)
    assert closed.value.rcvd is None
    assert [e["type"] for e in events] == ["audio.start", "audio.done", "error"]
    assert events[1]["error"] is True
    assert events[2]["partial_audio"] is True


async def test_config_and_idle_timeouts(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_socket, "CONFIG_S", 0.1)
    monkeypatch.setattr(stream_socket, "CLAUSE_S", 0.1)
    monkeypatch.setattr(stream_socket, "IDLE_S", 0.3)
    live = await start()
    for first in (None, "session.config"):
        async with open_socket(live) as ws:
            if first is not None:
                await configured(ws)
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(ws.recv(), 5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4408


@pytest.mark.parametrize("how", ["cancel", "leave"])
async def test_cancel_and_leaving_free_the_rows(start: StartServer, how: str) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=60))
    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="One. Two. Three. Four. Five. ")
        while not isinstance(await asyncio.wait_for(ws.recv(), 5), bytes):
            pass
        if how == "cancel":
            await send(ws, "session.cancel")
            with pytest.raises(ConnectionClosed):
                await read_all(ws)
        else:
            ws.transport.abort()
        await live.at_rest()
    assert 1 <= live.engine.num_aborted <= 4
    assert live.engine.num_finished == 0


async def test_a_session_has_a_limit_of_characters(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_socket, "MAX_CHARACTERS", 100)
    live = await start()
    async with open_socket(live) as ws:
        await configured(ws)
        await send(ws, "input.text", text="x" * 101)
        told = json.loads(await asyncio.wait_for(ws.recv(), 5))
        assert told["error"]["code"] == "string_above_max_length"
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(ws.recv(), 5)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
