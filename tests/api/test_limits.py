"""Rate limits: exact over every surface, and indifferent to what happens to Redis."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import generate_latest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from chattts_api.api.guard import limits as limits_module
from chattts_api.api.guard.caller import Caller, Limits
from chattts_api.api.guard.key_file import StoredKey, add_key
from chattts_api.api.guard.limits import RateLimits
from chattts_api.api.guard.window import MAX_KEYS, MonotonicStorage
from chattts_api.errors import InputTooLongError, RateLimitedError
from tests.api.conftest import KEY, SPEECH, Live, StartServer
from tests.api.test_guard import mount_page

BEARER = {"Authorization": f"Bearer {KEY}"}


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def caller(requests: int | None = None, characters: int | None = None) -> Caller:
    return Caller(bucket="key:x", limits=Limits(requests, characters))


async def test_exactly_the_budget_in_any_minute() -> None:
    clock = Clock()
    limits = RateLimits(clock=clock)
    admitted: list[float] = []
    waits_s: list[int] = []
    for _ in range(6000):
        clock.now_s += 0.05
        try:
            await limits.charge_request(caller(60))
        except RateLimitedError as error:
            waits_s.append(error.retry_after_s or 0)
        else:
            admitted.append(clock.now_s)
    assert min(waits_s) >= 1
    assert len(admitted) == 60 * 5
    for when_s in admitted:
        assert sum(when_s - 60 < other <= when_s for other in admitted) <= 60


async def test_waiting_as_told_succeeds() -> None:
    clock = Clock()
    limits = RateLimits(clock=clock)
    for _ in range(3):
        await limits.charge_request(caller(3))
        clock.now_s += 10.5
    with pytest.raises(RateLimitedError) as refused:
        await limits.charge_request(caller(3))
    clock.now_s += refused.value.retry_after_s or 0
    standing = await limits.charge_request(caller(3))
    assert standing is not None
    assert (standing.limit, standing.remaining) == (3, 0)


async def test_characters_are_counted_apart() -> None:
    clock = Clock()
    limits = RateLimits(clock=clock)
    who = caller(None, 1000)
    await limits.charge_characters(who, 600)
    with pytest.raises(RateLimitedError) as refused:
        await limits.charge_characters(who, 500)
    await limits.charge_characters(who, 400)
    clock.now_s += refused.value.retry_after_s or 0
    await limits.charge_characters(who, 500)
    with pytest.raises(InputTooLongError):
        await limits.charge_characters(who, 1001)


def test_forgotten_keys_bound_the_memory() -> None:
    storage = MonotonicStorage()
    for n in range(MAX_KEYS + 500):
        assert storage.acquire_entry(f"k{n}", 1, 60)
    assert storage.num_keys == MAX_KEYS


async def test_one_budget_over_all_surfaces_and_forged_addresses(start: StartServer) -> None:
    live = await start(api_keys=[KEY], rate_limit=20, mount_ui=mount_page)
    seen: Counter[int] = Counter()
    ways = (
        ("GET", "/v1/models"), ("GET", "/v1/models/tts-1"), ("GET", "/nothing"),
        ("POST", "/ui/gradio_api/queue/join"), ("GET", "/ui/config"),
        ("POST", "/v1/audio/speech"), ("POST", "/v1/text/normalize"), ("GET", "/download/x"),
    )  # fmt: skip
    for n in range(80):
        method, path = ways[n % len(ways)]
        forged = f"1.2.3.{n}"
        headers = {
            **BEARER, "X-Forwarded-For": forged, "X-Real-IP": forged, "Forwarded": f"for={forged}",
        }  # fmt: skip
        answer = await live.client.request(method, path, headers=headers, json=SPEECH)
        seen[answer.status_code] += 1
        if answer.status_code == 429:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["error"]["code"] == "rate_limit_exceeded"
            assert answer.json()["error"]["type"] == "rate_limit_error"
    assert seen[429] == 60
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{live.port}/ws/tts", proxy=None, additional_headers=BEARER)
    assert refused.value.response.status_code == 429
    assert (await live.client.get("/health/live")).status_code == 200


async def test_requests_of_a_socket_count(start: StartServer) -> None:
    live = await start(api_keys=[KEY], rate_limit=5)
    url = f"ws://127.0.0.1:{live.port}/ws/tts"
    kinds: Counter[str] = Counter()
    async with connect(url, proxy=None, additional_headers=BEARER) as ws:
        for n in range(10):
            await ws.send(json.dumps({"req_id": f"r{n}", "text": "Hello."}))
        while kinds["end"] + kinds["error"] < 10:
            message = await asyncio.wait_for(ws.recv(), 5)
            if isinstance(message, str):
                kinds[json.loads(message)["type"]] += 1
    assert kinds["end"] == 4
    assert kinds["error"] == 6


async def test_headers_tell_where_a_caller_stands(start: StartServer) -> None:
    live = await start(api_keys=[KEY], rate_limit=3)
    answers = [await live.client.get("/v1/models", headers=BEARER) for _ in range(3)]
    assert [a.headers["x-ratelimit-remaining-requests"] for a in answers] == ["2", "1", "0"]
    assert answers[0].headers["x-ratelimit-limit-requests"] == "3"
    assert answers[0].headers["x-ratelimit-reset-requests"] == "1m0s"


async def test_a_key_has_its_own_figures(start: StartServer, tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    template = StoredKey(name="a", sha256="0" * 64, requests=2, characters=30)
    own = add_key(path, template)
    plain = add_key(path, StoredKey(name="b", sha256="0" * 64))
    live = await start(api_keys_file=path, rate_limit=4)
    for key, budget in ((own, 2), (plain, 4)):
        headers = {"Authorization": f"Bearer {key}"}
        statuses = [
            (await live.client.get("/v1/models", headers=headers)).status_code for _ in range(6)
        ]
        assert statuses.count(200) == budget


async def test_characters_are_refused_over_http(start: StartServer) -> None:
    live = await start(character_limit=40)
    texts = ("a" * 30, "b" * 30, "c" * 41)
    answers = [
        await live.client.post("/v1/audio/speech", json={**SPEECH, "input": text}) for text in texts
    ]
    assert [a.status_code for a in answers] == [200, 429, 400]


async def test_wrong_keys_are_limited_and_the_right_one_is_not(
    start: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "MAX_WRONG_KEYS", 20)
    live = await start(api_keys=[KEY])
    seen: Counter[int] = Counter()
    for n in range(40):
        headers = {"Authorization": f"Bearer wrong-{n}"}
        seen[(await live.client.get("/v1/models", headers=headers)).status_code] += 1
    assert seen == {401: 20, 429: 20}
    assert (await live.client.get("/v1/models", headers=BEARER)).status_code == 200
    assert (await live.client.get("/v1/models")).status_code == 401


async def test_a_trusted_proxy_is_believed(start: StartServer) -> None:
    live = await start(allow_anonymous=True, rate_limit=2, trusted_proxies=["127.0.0.1"])

    async def status(forwarded: str) -> int:
        headers = {"X-Forwarded-For": forwarded}
        return (await live.client.get("/v1/models", headers=headers)).status_code

    assert [await status("9.9.9.9, 1.1.1.1") for _ in range(3)] == [200, 200, 429]
    assert await status("1.1.1.1, 2.2.2.2") == 200
    assert await status("8.8.8.8, 1.1.1.1") == 429
    assert [await status(f"2001:db8::{n}") for n in range(3)] == [200, 200, 429]


# ---- Redis


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OwnRedis:
    """A redis-server of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self.start()

    @property
    def uri(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self, *extra: str) -> None:
        self.process = subprocess.Popen(
            [
                "redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                "--dir", str(self._folder), *extra,
            ],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        deadline_s = time.monotonic() + 5
        while time.monotonic() < deadline_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("redis-server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    assert shutil.which("redis-server"), "install redis-server"
    server = OwnRedis(tmp_path)
    yield server
    server.kill()


async def test_two_servers_share_one_budget(start: StartServer, redis: OwnRedis) -> None:
    lives = [await start(api_keys=[KEY], rate_limit=20, rate_storage=redis.uri) for _ in range(2)]
    seen: Counter[int] = Counter()
    for n in range(50):
        answer = await lives[n % 2].client.get("/v1/models", headers=BEARER)
        seen[answer.status_code] += 1
    assert seen == {200: 20, 429: 30}


async def timed(live: Live, path: str) -> tuple[int, float]:
    began_s = time.monotonic()
    answer = await live.client.get(path, headers=BEARER)
    return answer.status_code, time.monotonic() - began_s


def backend_up(live: Live) -> float:
    text = generate_latest(live.server.services.metrics.registry).decode()
    line = next(line for line in text.splitlines() if line.startswith("ratelimit_backend_up "))
    return float(line.split()[1])


@pytest.mark.parametrize("fault", ["freeze", "kill", "full", "absent"])
async def test_redis_faults_cost_nothing(
    start: StartServer, redis: OwnRedis, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "REDIS_REST_S", 0.3)
    live = await start(api_keys=[KEY], rate_limit=1000, rate_storage=redis.uri)
    assert (await timed(live, "/v1/models"))[0] == 200
    if fault == "freeze":
        redis.process.send_signal(signal.SIGSTOP)
    elif fault == "full":
        redis.kill()
        redis.start("--maxmemory", "1", "--maxmemory-policy", "noeviction")
    else:
        redis.kill()
    for _ in range(20):
        results = await asyncio.gather(
            *(timed(live, "/v1/models") for _ in range(3)), timed(live, "/health/live")
        )
        assert [status for status, _ in results] == [200] * 4
        assert max(elapsed_s for _, elapsed_s in results) < 0.45
        assert results[-1][1] < 0.1
        await asyncio.sleep(0.02)
    assert backend_up(live) == 0
    if fault == "freeze":
        redis.process.send_signal(signal.SIGCONT)
    elif fault == "full":
        redis.kill()
        redis.start()
    elif fault == "kill":
        redis.start()
    else:
        return
    async with asyncio.timeout(5):
        while backend_up(live) == 0:
            assert (await timed(live, "/v1/models"))[0] == 200
            await asyncio.sleep(0.05)


async def test_an_outage_does_not_open_the_budget(start: StartServer, redis: OwnRedis) -> None:
    live = await start(api_keys=[KEY], rate_limit=10, rate_storage=redis.uri)
    statuses: list[int] = []
    for n in range(30):
        if n == 5:
            redis.kill()
        statuses.append((await timed(live, "/v1/models"))[0])
    assert Counter(statuses) == {200: 10, 429: 20}


async def test_pages_assets_do_not_count(start: StartServer) -> None:
    live = await start(api_keys=[KEY], rate_limit=2, mount_ui=mount_page)
    client: httpx.AsyncClient = live.client
    for _ in range(10):
        assert (await client.get("/ui/assets/x.js", headers=BEARER)).status_code == 200
        assert (await client.get("/health", headers=BEARER)).status_code == 200
    assert (await client.get("/ui/", headers=BEARER)).status_code == 200
