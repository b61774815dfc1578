"""The guard over real sockets: keys, cookies, origins, hosts, the wall around every route."""

import asyncio
import base64
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from chattts_api.api.app import create_app
from chattts_api.api.guard import layer
from chattts_api.api.guard.key_file import StoredKey, add_key, revoke_key
from chattts_api.errors import SetupError
from chattts_api.synthesis import Synthesis
from chattts_api.voices.catalog import VoiceCatalog
from tests.api.conftest import KEY, SPEECH, Live, StartServer, make_settings
from tests.fakes import PlainReader, ScriptedEngine

BEARER = {"Authorization": f"Bearer {KEY}"}
OPEN = {("GET", "/health/live"), ("GET", "/health/ready"), ("GET", "/login"), ("POST", "/login")}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PAGE_PATHS = (
    "/ui", "/ui/", "/ui/config", "/ui/theme.css", "/ui/openapi.json", "/ui/gradio_api/info",
    "/ui/gradio_api/queue/join", "/ui/gradio_api/queue/data", "/ui/gradio_api/upload",
    "/ui/gradio_api/cancel", "/ui/gradio_api/heartbeat/x", "/ui/gradio_api/startup-events",
    "/ui/gradio_api/app_id", "/ui/gradio_api/token", "/ui/gradio_api/reset",
    "/ui/gradio_api/call/x", "/ui/gradio_api/run/x", "/ui/gradio_api/file=/etc/passwd",
    "/ui/assets/x.js", "/player/", "/nothing", "/docs", "/redoc", "/openapi.json",
    "//v1/audio/voices", "/v1/../v1/audio/voices", "/%761/audio/voices", "/HEALTH/live",
    "/healthz-open", "/health/live/", "/health/live/../../v1/models", "/login/x", "/metrics",
)  # fmt: skip
BAD_CREDENTIALS: tuple[dict[str, str], ...] = (
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"bearer {KEY}x"},
    {"Authorization": f"Bearer {KEY[:-1]}"},
    {"Authorization": f"Bearer {KEY.upper()}"},
    {"Authorization": f"Basic {base64.b64encode(KEY.encode()).decode()}"},
    {"Authorization": KEY},
    {"Authorization": "Bearer " + "k" * 8000},
    {"X-Api-Key": KEY},
    {"Cookie": f"chattts_login={KEY}"},
    {"Cookie": "chattts_login=99999999999.AAAA"},
    {"Sec-WebSocket-Protocol": f"bearer.{base64.urlsafe_b64encode(KEY.encode()).decode()}"},
)


def mount_page(app: FastAPI, _services: Any) -> None:
    """A mount that answers everything, as the page's own application would."""
    inner = FastAPI()

    async def answer(path: str) -> PlainTextResponse:
        return PlainTextResponse(path)

    inner.add_api_route("/{path:path}", answer, methods=list(METHODS))
    app.mount("/ui", inner)


def all_paths(live: Live) -> set[str]:
    app = live.server.guard.app
    assert isinstance(app, FastAPI)
    found: set[str] = set()
    waiting: list[Any] = list(app.router.routes)
    while waiting:
        route = waiting.pop()
        if isinstance(route, Mount):
            continue
        if isinstance(route, (Route, WebSocketRoute)):
            found.add(route.path.replace("{", "").replace("}", ""))
        elif hasattr(route, "original_router"):
            waiting += route.original_router.routes
        else:
            waiting += getattr(route, "routes", [])
    return found


async def test_every_route_is_walled(start: StartServer) -> None:
    live = await start(api_keys=[KEY], mount_ui=mount_page)
    paths = all_paths(live) | set(PAGE_PATHS)
    assert {"/v1/audio/speech", "/tts", "/v1/tts", "/metrics", "/v1/models/model"} <= paths
    num_checked = 0
    for path in sorted(paths):
        for method in METHODS:
            if (method, path) in OPEN or (method, path) == ("POST", "/logout"):
                continue
            answer = await live.client.request(method, path)
            assert answer.status_code == 401, (method, path, answer.status_code)
            if method != "HEAD":
                assert answer.json()["error"]["code"] == "invalid_api_key"
            assert answer.headers["www-authenticate"] == "Bearer"
            num_checked += 1
    assert num_checked > 300
    assert not live.engine.jobs


@pytest.mark.parametrize("headers", BAD_CREDENTIALS, ids=range(len(BAD_CREDENTIALS)))
async def test_bad_credentials(start: StartServer, headers: dict[str, str]) -> None:
    live = await start(api_keys=[KEY], mount_ui=mount_page)
    for method, path in (("POST", "/v1/audio/speech"), ("GET", "/ui/"), ("GET", "/health")):
        answer = await live.client.request(method, path, headers=headers, json=SPEECH)
        assert answer.status_code == 401
        assert KEY not in answer.text
    assert not live.engine.jobs


async def raw(live: Live, head: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    writer.write(head)
    await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


async def test_two_or_strange_authorization_headers(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    good = f"Authorization: Bearer {KEY}\r\n".encode()
    strange = (b"Authorization: Bearer \xff\xfe\xe4\r\n", b"Authorization: Bearer \r\n")
    for extra in (good + good, *strange):
        answer = await raw(
            live, b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + extra + b"\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 401")
    opened = await start()
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for extra in (good + good, *strange):
        assert (await raw(opened, head + extra + b"\r\n")).startswith(b"HTTP/1.1 200")


HOSTS = ("x/health/live?", "x/health/live#", "x/../health/live", "health/live", "@health/live")


@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_header_opens_nothing(start: StartServer, host: str) -> None:
    live = await start(api_keys=[KEY])
    head = f"GET /v1/audio/voices HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert (await raw(live, head.encode())).startswith(b"HTTP/1.1 401")


async def test_the_scheme_is_read_in_any_case(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {KEY}"}
        assert (await live.client.get("/v1/models", headers=headers)).status_code == 200


async def test_without_keys_any_authorization_is_ignored(start: StartServer) -> None:
    live = await start()
    for value in ("", "Bearer", "Bearer undefined", "Basic x", "nonsense"):
        answer = await live.client.get("/v1/models", headers={"Authorization": value})
        assert answer.status_code == 200


async def test_a_public_catalog_opens_its_routes_only(start: StartServer) -> None:
    live = await start(api_keys=[KEY], public_catalog=True)
    for path in ("/v1/models", "/models", "/v1/audio/voices", "/audio/voices", "/audio/models"):
        assert (await live.client.get(path)).status_code == 200
        assert (await live.client.post(path)).status_code == 401
    for path in ("/v1/audio/voices/x", "/v1/models/a/b", "/health"):
        assert (await live.client.get(path)).status_code == 401


async def test_open_routes(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    for method, path in OPEN:
        answer = await live.client.request(method, path)
        assert answer.status_code in ({401} if method == "POST" else {200}), path


async def test_login_gives_a_cookie_that_opens(start: StartServer) -> None:
    live = await start(api_keys=[KEY], mount_ui=mount_page)
    wrong = await live.client.post("/login", data={"key": "nope"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    right = await live.client.post("/login", data={"key": KEY, "next": "//evil.example/"})
    assert (right.status_code, right.headers["location"]) == (303, "/ui/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert KEY not in cookie
    assert (await live.client.get("/ui/")).status_code == 200
    assert (await live.client.post("/v1/audio/speech", json=SPEECH)).status_code == 200
    out = await live.client.post("/logout")
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert (await live.client.get("/ui/")).status_code == 401


async def test_a_browser_is_shown_the_form(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    answer = await live.client.get("/ui/", headers={"accept": "text/html,*/*"})
    assert answer.status_code == 401
    assert '<form method="post" action="/login">' in answer.text


EVIL = {"Origin": "https://evil.example"}


async def test_a_foreign_page_may_not_use_the_cookie(start: StartServer) -> None:
    live = await start(api_keys=[KEY], cors_origins=["https://chat.example.com"])
    await live.client.post("/login", data={"key": KEY})
    refused = await live.client.post("/v1/audio/speech", json=SPEECH, headers=EVIL)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    for origin in (live.url, "https://chat.example.com"):
        answer = await live.client.post("/v1/audio/speech", json=SPEECH, headers={"Origin": origin})
        assert answer.status_code == 200
    assert (await live.client.post("/login", data={"key": KEY}, headers=EVIL)).status_code == 403


async def test_a_foreign_page_may_not_use_an_open_server(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post("/v1/audio/speech", json=SPEECH, headers=EVIL)
    assert answer.status_code == 403
    assert not live.engine.jobs


async def test_cors_is_an_allow_list(start: StartServer) -> None:
    live = await start(
        api_keys=[KEY], cors_origins=["https://chat.example.com"], mount_ui=mount_page
    )
    question = {
        "Origin": "https://chat.example.com",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-stainless-lang",
    }
    granted = await live.client.options("/v1/audio/speech", headers=question)
    assert granted.status_code == 204
    assert granted.headers["access-control-allow-origin"] == "https://chat.example.com"
    assert granted.headers["access-control-allow-headers"] == "authorization,x-stainless-lang"
    assert "access-control-allow-credentials" not in granted.headers
    answer = await live.client.get("/v1/models", headers={**BEARER, **question})
    assert answer.headers["access-control-allow-origin"] == "https://chat.example.com"
    assert "x-request-id" in answer.headers["access-control-expose-headers"]
    for path in ("/v1/models", "/ui/config", "/v1/audio/speech"):
        for method in ("GET", "OPTIONS"):
            headers = {**BEARER, **question, **EVIL, "Host": "tts.example.com"}
            answer = await live.client.request(method, path, headers=headers)
            assert "access-control-allow-origin" not in answer.headers


async def test_a_private_server_answers_to_local_names_only(start: StartServer) -> None:
    live = await start()
    for host, status in (
        ("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:80", 200),
        ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("localhost/x", 403),
    ):  # fmt: skip
        answer = await live.client.get("/v1/models", headers={"Host": host})
        assert answer.status_code == status, host
    opened = await start(allow_anonymous=True)
    answer = await opened.client.get("/v1/models", headers={"Host": "tts.example.com"})
    assert answer.status_code == 200


SOCKETS = ("/ws/tts", "/v1/audio/speech/stream", "/audio/speech/stream", "/ws/nothing")


async def refused_status(live: Live, path: str, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{live.port}{path}", proxy=None, **options)
    body = json.loads(refused.value.response.body)
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert refused.value.response.headers["x-request-id"]
    return refused.value.response.status_code


@pytest.mark.parametrize("path", SOCKETS)
async def test_sockets_are_refused_before_they_are_accepted(start: StartServer, path: str) -> None:
    live = await start(api_keys=[KEY])
    assert await refused_status(live, path) == 401
    assert await refused_status(live, f"{path}?token={KEY}&api_key={KEY}") == 401
    wrong = {"Authorization": "Bearer wrong"}
    assert await refused_status(live, path, additional_headers=wrong) == 401
    assert await refused_status(live, path, additional_headers={**BEARER, **EVIL}) == 403
    assert await refused_status(live, path, subprotocols=["chattts", "bearer.!!!"]) == 401


async def test_sockets_open_with_header_cookie_and_subprotocol(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    url = f"ws://127.0.0.1:{live.port}/ws/tts"
    encoded = base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("=")
    async with connect(url, proxy=None, additional_headers=BEARER) as ws:
        assert ws.subprotocol is None
    protocols: Any = ["chattts", f"bearer.{encoded}"]
    async with connect(url, proxy=None, subprotocols=protocols) as ws:
        assert ws.subprotocol == "chattts"
    await live.client.post("/login", data={"key": KEY})
    cookie = f"chattts_login={live.client.cookies['chattts_login']}"
    async with connect(url, proxy=None, additional_headers={"Cookie": cookie}):
        pass
    evil = {"Cookie": cookie, **EVIL}
    assert await refused_status(live, "/ws/tts", additional_headers=evil) == 403


def key_named(name: str, **figures: Any) -> StoredKey:
    return StoredKey(name=name, sha256="0" * 64, **figures)


async def test_the_key_file_is_followed(
    start: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chattts_api.api.guard.keys.CHECK_EVERY_S", 0.0)
    path = tmp_path / "keys.jsonl"
    first = add_key(path, key_named("first"))
    live = await start(api_keys_file=path)

    async def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return (await live.client.get("/v1/models", headers=headers)).status_code

    assert await status(first) == 200
    second = add_key(path, key_named("second"))
    old = add_key(path, key_named("old", expires="2001-01-01"))
    assert [await status(key) for key in (first, second, old)] == [200, 200, 401]
    good = path.read_text()
    path.write_text(good + "broken\n")
    assert await status(second) == 200
    path.write_text(good)
    revoke_key(path, "first")
    assert [await status(key) for key in (first, second)] == [401, 200]
    path.unlink()
    assert await status(second) == 401
    assert first not in good


async def test_a_key_has_its_own_concurrency(start: StartServer, tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    key = add_key(path, key_named("narrow", concurrency=2))
    live = await start(ScriptedEngine(pace_s=0.05, seconds=1), api_keys_file=path)
    headers = {"Authorization": f"Bearer {key}"}
    posts = [live.client.post("/v1/audio/speech", json=SPEECH, headers=headers) for _ in range(5)]
    statuses = sorted(answer.status_code for answer in await asyncio.gather(*posts))
    assert statuses == [200, 200, 429, 429, 429]


async def test_bodies_are_bounded(start: StartServer) -> None:
    live = await start()
    frame = json.dumps({**SPEECH, "pad": ""})
    for extra, status in ((-1, 200), (0, 200), (1, 413)):
        body = json.dumps({**SPEECH, "pad": "x" * (65_536 - len(frame) + extra)})
        assert len(body) == 65_536 + extra
        headers = {"content-type": "application/json"}
        answer = await live.client.post("/v1/audio/speech", content=body, headers=headers)
        assert answer.status_code == status

        async def chunked(body: str = body) -> Any:
            yield body.encode()

        answer = await live.client.post("/v1/audio/speech", content=chunked(), headers=headers)
        assert answer.status_code == status
    assert answer.json()["error"]["code"] == "content_too_large"


MALFORMED = (
    b"Content-Length: -1", b"Content-Length: abc", b"Content-Length: 5\r\nContent-Length: 6",
    b"Content-Length: 1000000000000000000", b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: xchunked", b"X: " + b"y" * 70_000,
)  # fmt: skip


@pytest.mark.parametrize("line", MALFORMED, ids=range(len(MALFORMED)))
async def test_malformed_heads(start: StartServer, line: bytes) -> None:
    live = await start()
    head = (
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    answer = await raw(live, head + line + b"\r\nConnection: close\r\n\r\nhello")
    assert answer[9:12] in {b"400", b"413"}, answer[:100]
    assert (await live.client.get("/health/live")).status_code == 200


async def test_headers_are_bounded(start: StartServer) -> None:
    live = await start()
    answer = await live.client.get("/v1/models", headers={"X-Big": "y" * 17_000})
    assert answer.status_code == 400
    answer = await live.client.get("/v1/models?" + "q" * 9000)
    assert answer.status_code == 400
    assert httpx.Response(400, content=answer.content).json()["error"]["type"]


async def test_sockets_are_bounded(start: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "MAX_SOCKETS", 3)
    monkeypatch.setattr(layer, "MAX_CALLER_SOCKETS", 2)
    live = await start(api_keys=[KEY, KEY + "2"])
    url = f"ws://127.0.0.1:{live.port}/ws/tts"
    other = {"Authorization": f"Bearer {KEY}2"}
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(connect(url, proxy=None, additional_headers=BEARER))
        assert await refused_status(live, "/ws/tts", additional_headers=BEARER) == 429
        await stack.enter_async_context(connect(url, proxy=None, additional_headers=other))
        assert await refused_status(live, "/ws/tts", additional_headers=other) == 503
    async with asyncio.timeout(2):
        while live.server.guard._sockets:
            await asyncio.sleep(0.01)


def test_a_public_address_needs_keys() -> None:
    engine = ScriptedEngine()
    synthesis = Synthesis(PlainReader(), engine, timeout_s=1)
    with pytest.raises(SetupError, match="CHATTTS_API_KEYS"):
        create_app(make_settings(host="0.0.0.0"), synthesis, VoiceCatalog())
    create_app(make_settings(host="0.0.0.0", allow_anonymous=True), synthesis, VoiceCatalog())
    create_app(make_settings(host="0.0.0.0", api_keys=[KEY]), synthesis, VoiceCatalog())
