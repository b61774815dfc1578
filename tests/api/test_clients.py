"""The exact requests of the clients in use, and the real OpenAI SDK for Python."""

import asyncio
import base64
import io
import json
import wave
from typing import Any

import av
import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.api.conftest import KEY, Live, StartServer
from tests.fakes import ScriptedEngine

BEARER = {"Authorization": f"Bearer {KEY}"}
TEXT = "Hello there."
SECONDS = 1.0
MAGIC = {"mp3": b"\xff", "opus": b"OggS", "aac": b"\xff", "flac": b"fLaC", "wav": b"RIFF"}


def engine() -> ScriptedEngine:
    return ScriptedEngine(seconds=SECONDS)


def sdk(live: Live, **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{live.url}/v1", api_key=KEY, **options)


def duration_s(data: bytes) -> float:
    """As another program hears it."""
    with av.open(io.BytesIO(data)) as file:
        return sum(f.samples / f.sample_rate for f in file.decode(audio=0))


# ---- openai-python


@pytest.mark.parametrize("audio_format", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
async def test_openai_python_create(start: StartServer, audio_format: Any) -> None:
    live = await start(engine(), api_keys=[KEY])
    async with sdk(live) as client:
        speech = await client.audio.speech.create(
            model="gpt-4o-mini-tts",
            voice="coral",
            input=TEXT,
            instructions="Cheerful.",
            response_format=audio_format,
        )
        data = speech.content
    kind = {"mp3": "mpeg"}.get(audio_format, audio_format)
    assert speech.response.headers["content-type"] == f"audio/{kind}"
    assert data.startswith(MAGIC.get(audio_format, b""))
    seconds = len(data) / 48_000 if audio_format == "pcm" else duration_s(data)
    assert seconds == pytest.approx(SECONDS, abs=0.15)


async def test_openai_python_streams(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    async with (
        sdk(live) as client,
        client.audio.speech.with_streaming_response.create(
            model="tts-1", voice={"id": "alloy"}, input=TEXT, response_format="pcm"
        ) as speech,
    ):
        pieces = [piece async for piece in speech.iter_bytes(1024)]
        assert speech.request_id
    assert sum(map(len, pieces)) == 48_000 * SECONDS


async def test_openai_python_reads_the_errors(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    async with sdk(live) as client:
        with pytest.raises(openai.BadRequestError) as bad:
            await client.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
        assert (bad.value.code, bad.value.param) == ("voice_not_found", "voice")
        assert bad.value.type == "invalid_request_error"
        assert bad.value.request_id
        assert "Error code: 400" in str(bad.value)
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-9")
    async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key="wrong") as client:
        with pytest.raises(openai.AuthenticationError) as denied:
            await client.models.list()
        assert denied.value.code == "invalid_api_key"


async def test_openai_python_lists_models(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    async with sdk(live) as client:
        ids = [model.id async for model in client.models.list()]
        assert "tts-1" in ids
        assert (await client.models.retrieve("tts-1")).object == "model"


async def test_openai_python_retries_as_told(start: StartServer) -> None:
    live = await start(ScriptedEngine(max_jobs=0), api_keys=[KEY])
    async with sdk(live, max_retries=1) as client:
        call = client.audio.speech.create(model="tts-1", voice="alloy", input=TEXT)
        retried = asyncio.create_task(call)
        while live.server.services.metrics.requests.labels("speech")._value.get() < 1:
            await asyncio.sleep(0.01)
        live.engine.max_jobs = 4
        assert (await retried).content
    assert len(live.engine.jobs) == 1


# ---- curl


async def test_curl(start: StartServer, tmp_path: Any) -> None:
    live = await start(engine(), api_keys=[KEY])
    out = tmp_path / "speech.mp3"
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", f"{live.url}/v1/audio/speech",
        "-H", f"Authorization: Bearer {KEY}", "-H", "Content-Type: application/json",
        "-d", '{"model": "tts-1", "input": "Hello there.", "voice": "alloy"}', "-o", str(out),
    )  # fmt: skip
    assert await process.wait() == 0
    assert duration_s(out.read_bytes()) == pytest.approx(SECONDS, abs=0.15)


# ---- chat front ends


async def test_open_webui(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY], public_catalog=True)
    headers = {**BEARER, "X-OpenWebUI-User-Name": "ann", "X-OpenWebUI-User-Id": "1"}
    body = {"input": TEXT, "voice": "alloy", "model": "tts-1", "speed": 1.0}
    for base in ("/v1", ""):
        answers = await asyncio.gather(
            *(
                live.client.post(f"{base}/audio/speech", json=body, headers=headers)
                for _ in range(3)
            )
        )
        assert all(duration_s(a.content) == pytest.approx(SECONDS, abs=0.15) for a in answers)
        models = (await live.client.get(f"{base}/audio/models")).json()["models"]
        assert all(set(m) >= {"id"} for m in models)
        voices = (await live.client.get(f"{base}/audio/voices")).json()["voices"]
        assert all(set(v) >= {"id", "name"} for v in voices)
        assert (await live.client.get(f"{base}/models")).json()["data"]
    bad = await live.client.post("/v1/audio/speech", json={"voice": "alloy"}, headers=headers)
    assert bad.json()["error"]["message"]


async def test_silly_tavern_with_an_empty_key(start: StartServer) -> None:
    live = await start(engine())
    body = json.dumps({
        "input": TEXT, "response_format": "mp3", "voice": "alloy", "speed": 1, "model": "tts-1",
        "custom_params": {"a": 1},
    })  # fmt: skip
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(
        f"POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \r\n"
        f"Content-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_lobe_from_a_browser(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY], cors_origins=["https://chat.example.com"])
    origin = {"Origin": "https://chat.example.com"}
    wanted = "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os"
    question = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": wanted,
    }
    granted = await live.client.options("/v1/audio/speech", headers=question)
    assert granted.headers["access-control-allow-headers"] == wanted
    body = {"input": TEXT, "model": "tts-1", "voice": "alloy"}
    answer = await live.client.post("/v1/audio/speech", json=body, headers={**BEARER, **origin})
    assert answer.headers["access-control-allow-origin"] == origin["Origin"]
    assert duration_s(answer.content) == pytest.approx(SECONDS, abs=0.15)


async def test_libre_chat_joins_bodies(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    joined = b""
    for body in (
        {"input": TEXT, "model": "tts-1", "voice": "alloy", "backend": "x"},
        {"input": TEXT, "model": "alloy", "backend": "chattts", "voice": "nova"},
        {"input": TEXT, "model": "tts-1", "voice": "alloy", "backend": None},
    ):
        joined += (await live.client.post("/v1/audio/speech", json=body, headers=BEARER)).content
    assert duration_s(joined) == pytest.approx(3 * SECONDS, abs=0.4)
    assert b"Xing" not in joined
    assert b"Info" not in joined


# ---- home automation


async def test_wyoming_openai(start: StartServer) -> None:
    live = await start(engine())
    for probe in ("/v1/readyz", "/v1/test"):
        assert (await live.client.get(probe)).status_code == 404
    assert (await live.client.get("/health")).text.strip() != "OK"
    async with (
        sdk(live) as client,
        client.audio.speech.with_streaming_response.create(
            model="tts-1", voice="alloy", input=TEXT, response_format="wav", speed=1.0
        ) as speech,
    ):
        pieces = [piece async for piece in speech.iter_bytes(2048)]
    with wave.open(io.BytesIO(pieces[0])) as head:
        assert (head.getframerate(), head.getnchannels(), head.getsampwidth()) == (24_000, 1, 2)
    assert pieces[0][36:40] == b"data"


@pytest.mark.parametrize("audio_format", ["mp3", "opus"])
async def test_home_assistant(start: StartServer, audio_format: str) -> None:
    live = await start(engine(), api_keys=[KEY])
    body = {
        "model": "gpt-4o-mini-tts", "input": TEXT, "voice": "shimmer", "speed": 1.0,
        "response_format": audio_format, "instructions": "None", "chime": False,
    }  # fmt: skip
    answer = await live.client.post("/v1/audio/speech", json=body, headers=BEARER)
    assert duration_s(answer.content) == pytest.approx(SECONDS, abs=0.15)


# ---- workflows


async def test_dify(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    body = {"model": "chattts", "input": "Test.", "voice": "alloy", "response_format": "mp3"}
    answer = await live.client.post("/v1/audio/speech", json=body, headers=BEARER)
    assert answer.status_code == 200


@pytest.mark.parametrize("audio_format", ["mp3", "opus", "aac", "flac"])
async def test_n8n(start: StartServer, audio_format: str) -> None:
    live = await start(engine(), api_keys=[KEY])
    headers = {**BEARER, "OpenAI-Organization": "org-1"}
    assert (await live.client.get("/v1/models", headers=headers)).json()["object"] == "list"
    body = {
        "model": "tts-1-hd", "input": TEXT, "voice": "onyx", "response_format": audio_format,
        "speed": 1,
    }  # fmt: skip
    answer = await live.client.post("/v1/audio/speech", json=body, headers=headers)
    assert answer.content.startswith(MAGIC[audio_format])


# ---- voice agents


def live_kit_audio(answer: httpx.Response) -> bytes:
    """LiveKit's way of reading server-sent events."""
    assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
    audio = b""
    for line in answer.text.splitlines():
        if not line.startswith("data: "):
            assert line == ""
            continue
        event = json.loads(line[len("data: ") :])
        if event["type"] == "speech.audio.delta":
            audio += base64.b64decode(event.get("delta") or event["audio"])
        else:
            assert event["type"] == "speech.audio.done"
            assert {type(event["usage"][k]) for k in event["usage"]} == {int}
    return audio


async def test_live_kit(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    await live.client.get("/v1/", headers=BEARER)
    body = {
        "model": "gpt-4o-mini-tts", "voice": "ash", "input": TEXT, "response_format": "mp3",
        "speed": 1.0, "instructions": "Calm.", "stream_format": "sse",
    }  # fmt: skip
    answer = await live.client.post("/v1/audio/speech", json=body, headers=BEARER)
    assert duration_s(live_kit_audio(answer)) == pytest.approx(SECONDS, abs=0.15)


async def test_pipecat(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    async with (
        sdk(live) as client,
        client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts",
            voice="sage",
            input=TEXT,
            response_format="pcm",
            speed=1.0,
            instructions="Warm.",
        ) as speech,
    ):
        assert speech.status_code == 200
        data = b"".join([piece async for piece in speech.iter_bytes(480)])
    assert len(data) == 48_000 * SECONDS


async def test_openai_agents(start: StartServer) -> None:
    live = await start(engine(), api_keys=[KEY])
    for instructions in (None, "Calm."):
        async with (
            sdk(live) as client,
            client.audio.speech.with_streaming_response.create(
                model="gpt-4o-mini-tts",
                voice="ash",
                input=TEXT,
                response_format="pcm",
                extra_body={"instructions": instructions},
            ) as speech,
        ):
            sizes = [len(piece) async for piece in speech.iter_bytes(1024)]
        assert sum(sizes) == 48_000 * SECONDS
        assert all(size % 2 == 0 for size in sizes)
