"""Random heads, bodies and socket dialogues: never a 5xx, never a lost process, nothing left."""

import asyncio
import json
import random
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.api.conftest import SPEECH, Live, StartServer
from tests.fakes import ScriptedEngine

NUM_BODIES = 400
NUM_RAW = 100
NUM_DIALOGUES = 40
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 4, 1e308, -1e308, 2**63, 2**64, 10**300, "", "a", "\0", "\ud800",
    "．", "\u202e", "[spk_emb]", "a" * 5000, "1" * 300, [], {}, [[]], {"id": "alloy"}, {"id": None},
    {"a": {"b": []}}, float("nan"), float("inf"), "alloy", "seed:1", "seed:-1", "一" * 100, "mp3",
)  # fmt: skip
FIELDS = (
    "model", "input", "voice", "response_format", "speed", "stream_format", "stream",
    "instructions", "seed", "temperature", "top_p", "top_k", "repetition_penalty", "speed_token",
    "refine", "oral", "laugh", "break", "lang", "normalize", "lexicon", "sample_rate", "other",
)  # fmt: skip
ROUTES = (
    "/v1/audio/speech", "/audio/speech", "/tts", "/v1/tts", "/v1/text/normalize",
    "/v1/text/tokens", "/v1/text/refine",
)  # fmt: skip
JSON_TYPE = {"content-type": "application/json"}


def random_body(rng: random.Random) -> str:
    body: dict[str, Any] = dict(SPEECH) | {"text": "Hello."}
    for _ in range(rng.randint(1, 4)):
        body[rng.choice((*FIELDS, "text", "speaker"))] = rng.choice(VALUES)
    text = json.dumps(body)
    if rng.random() < 0.3:
        cut = rng.randrange(len(text))
        text = text[:cut] + rng.choice(("", "\0", '"', "{", "NaN", "\\u")) + text[cut + 1 :]
    return text


async def assert_well(live: Live, canary: bytes) -> None:
    await live.at_rest()
    body = {**SPEECH, "response_format": "pcm", "seed": 1}
    answer = await live.client.post("/v1/audio/speech", json=body)
    assert answer.content == canary
    assert (await live.client.get("/health/ready")).status_code == 200


async def canary_of(live: Live) -> bytes:
    body = {**SPEECH, "response_format": "pcm", "seed": 1}
    return (await live.client.post("/v1/audio/speech", json=body)).content


async def test_random_bodies(start: StartServer) -> None:
    rng = random.Random(5)
    live = await start(ScriptedEngine(seconds=0.1))
    canary = await canary_of(live)
    for _ in range(NUM_BODIES):
        text = random_body(rng)
        answer = await live.client.post(rng.choice(ROUTES), content=text, headers=JSON_TYPE)
        assert answer.status_code in {200, 400, 404, 413}, text[:300]
        if answer.status_code != 200:
            assert len(answer.content) <= 2048
            assert "detail" in answer.json() or len(answer.json()["error"]) == 4
    await assert_well(live, canary)


def random_head(rng: random.Random) -> bytes:
    good = (
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randint(1, 300))
    if kind == 1:  # TLS, HTTP/2 and HTTP/0.9 on the HTTP port
        tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(100)
        return rng.choice((tls, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\r\n"))
    data = bytearray(good)
    for _ in range(rng.randint(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data) if kind == 2 else bytes(data[: rng.randrange(1, len(data))])


async def test_random_bytes_on_the_port(start: StartServer) -> None:
    rng = random.Random(6)
    live = await start()
    canary = await canary_of(live)
    for _ in range(NUM_RAW):
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        writer.write(random_head(rng))
        try:
            answer = await asyncio.wait_for(reader.read(4096), 0.05)
        except TimeoutError:
            answer = b""
        assert not answer.startswith(b"HTTP/1.1 5"), answer
        writer.transport.abort()
    await assert_well(live, canary)


async def test_random_dialogues(start: StartServer) -> None:
    rng = random.Random(7)
    live = await start(ScriptedEngine(seconds=0.1))
    canary = await canary_of(live)
    types = (
        "speak", "cancel", "config", "session.config", "input.text", "input.flush", "input.done",
        "session.cancel", "x",
    )  # fmt: skip
    for number in range(NUM_DIALOGUES):
        path = ("/ws/tts", "/v1/audio/speech/stream")[number % 2]
        async with connect(f"ws://127.0.0.1:{live.port}{path}", proxy=None) as ws:
            try:
                for _ in range(rng.randint(1, 8)):
                    message: Any = {"type": rng.choice(types), "req_id": rng.choice(VALUES)}
                    message |= {rng.choice((*FIELDS, "text", "framing")): rng.choice(VALUES)}
                    text = json.dumps(message)
                    await ws.send(text if rng.random() < 0.9 else text[: len(text) // 2].encode())
            except ConnectionClosed:
                continue
            if rng.random() < 0.3:
                ws.transport.abort()
    async with asyncio.timeout(10):
        while live.server.guard._sockets:
            await asyncio.sleep(0.01)
    await assert_well(live, canary)


async def test_pipelined_requests_are_answered_in_order(start: StartServer) -> None:
    live = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    one = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
    writer.write((one + b"\r\n") * 9 + one + b"Connection: close\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 5)).count(b"HTTP/1.1 200") == 10
    writer.close()


async def test_a_body_is_asked_for(start: StartServer) -> None:
    live = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    head = "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
    body = json.dumps(SPEECH)
    writer.write(
        f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(body.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_many_chunks_are_refused_early(start: StartServer) -> None:
    live = await start()

    async def crumbs() -> Any:
        for _ in range(100_000):
            yield b" "

    async with httpx.AsyncClient(base_url=live.url, timeout=20) as client:
        try:
            answer = await client.post("/v1/audio/speech", content=crumbs(), headers=JSON_TYPE)
            status = answer.status_code
        except httpx.TransportError:
            status = 413  # refused and closed while the client was still sending
    assert status == 413
    assert (await live.client.get("/health/live")).status_code == 200
