"""Health, draining, the circuit breaker, metrics that balance, and the guides' routes."""

import asyncio
import io
import json
import logging
import re
import wave

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chattts_api.api import downloads
from chattts_api.api.admission import MAX_FAILURES, CircuitBreaker
from chattts_api.api.downloads import DownloadShelf
from chattts_api.api.server import DrainingServer, server_config
from chattts_api.errors import EngineFailedError, GenerationFailedError, NotFoundError
from chattts_api.logs import JsonFormatter, RequestIdFilter, configure_logging
from tests.api.conftest import KEY, SPEECH, Live, StartServer, make_settings
from tests.fakes import ScriptedEngine, ScriptedJob


async def test_health_is_honest(start: StartServer) -> None:
    engine = ScriptedEngine()
    live = await start(engine)

    async def statuses() -> list[int]:
        paths = ("/health/live", "/health/ready", "/health")
        return [(await live.client.get(path)).status_code for path in paths]

    assert await statuses() == [200, 200, 200]
    body = (await live.client.get("/health")).json()
    for key in ("status", "model_loaded", "engine", "gpu_free_memory", "queue_length"):
        assert key in body
    engine.is_ready = False
    assert await statuses() == [200, 503, 200]
    assert (await live.client.get("/health")).json()["status"] == "model_loading"
    engine.is_ready = True
    engine.step_age_s = 31.0
    assert await statuses() == [200, 503, 200]
    engine.step_age_s = 61.0
    assert await statuses() == [503, 503, 200]
    engine.step_age_s = 0.0
    live.server.admission.drain()
    assert await statuses() == [200, 503, 200]
    ready = await live.client.get("/health/ready")
    assert ready.json()["error"]["code"] == "draining"
    assert int(ready.headers["retry-after"]) >= 1


async def test_draining_refuses_new_work_and_ends_the_old(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=1))
    body = {**SPEECH, "response_format": "pcm"}
    running = asyncio.create_task(live.client.post("/v1/audio/speech", json=body))
    while not live.engine.jobs:
        await asyncio.sleep(0.005)
    live.server.admission.drain()
    refused = await live.client.post("/v1/audio/speech", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")
    assert len((await running).content) == 48_000


async def test_the_server_ends_after_its_streams(start: StartServer) -> None:
    live = await start(ScriptedEngine(pace_s=0.01, seconds=1))
    config = server_config(live.server, make_settings())
    ending = DrainingServer(config, live.server, drain_timeout_s=5)
    task = asyncio.create_task(ending._serve())
    while not ending.started:
        await asyncio.sleep(0.005)
    port = ending.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1/audio/speech"
    body = {**SPEECH, "response_format": "pcm"}
    running = asyncio.create_task(live.client.post(url, json=body))
    while not live.engine.jobs:
        await asyncio.sleep(0.005)
    ending.handle_exit(15, None)
    assert len((await running).content) == 48_000
    await asyncio.wait_for(task, 3)


async def test_the_breaker_opens_probes_and_closes(start: StartServer) -> None:
    is_broken = True

    async def maybe(engine: ScriptedEngine, job: ScriptedJob) -> None:
        if is_broken:
            raise GenerationFailedError("No speech came of this text.")
        engine.put(job, 0, __import__("tests.fakes", fromlist=["tone"]).tone(0.2), is_last=True)
        job.stream.finish()

    live = await start(ScriptedEngine(script=maybe))
    clock = [0.0]
    live.server.admission.breaker = CircuitBreaker(lambda: clock[0])

    async def post() -> tuple[int, str | None]:
        answer = await live.client.post("/v1/audio/speech", json=SPEECH)
        is_ok = answer.status_code == 200
        return answer.status_code, None if is_ok else answer.json()["error"]["code"]

    for _ in range(MAX_FAILURES):
        assert await post() == (500, "generation_failed")
    num_jobs = len(live.engine.jobs)
    for _ in range(20):
        assert await post() == (503, "engine_failed")
    assert len(live.engine.jobs) == num_jobs
    assert (await live.client.get("/health/ready")).status_code == 503
    clock[0] += 3
    assert await post() == (500, "generation_failed")
    assert await post() == (503, "engine_failed")
    clock[0] += 3
    is_broken = False
    assert await post() == (200, None)
    assert await post() == (200, None)


def test_one_probe_at_a_time() -> None:
    clock = [0.0]
    breaker = CircuitBreaker(lambda: clock[0])
    for _ in range(MAX_FAILURES):
        breaker.fail()
    with pytest.raises(EngineFailedError):
        breaker.enter()
    clock[0] = 5.0
    assert breaker.enter()
    with pytest.raises(EngineFailedError):
        breaker.enter()
    breaker.leave(is_probe=True)
    assert breaker.enter()


async def series(live: Live) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = (await live.client.get("/metrics")).text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_counters_balance_and_series_stay_bounded(start: StartServer) -> None:
    live = await start(ScriptedEngine(max_jobs=2, pace_s=0.005))
    bodies = [
        {**SPEECH, "response_format": "pcm"}, {**SPEECH, "speed": 9}, {**SPEECH, "input": "…"},
        {**SPEECH, "voice": "nobody"}, {"input": 3},
    ]  # fmt: skip
    for _ in range(4):
        await asyncio.gather(
            *(live.client.post("/v1/audio/speech", json=b) for b in [*bodies, bodies[0]])
        )
    before = await series(live)
    for n in range(100):
        await live.client.get(f"/random/{n}", headers={"User-Agent": f"agent-{n}"})
        await live.client.post("/v1/audio/speech", json={**SPEECH, "voice": f"voice-{n}"})
    after = await series(live)
    assert set(before) == set(after)
    received = after["tts_requests_total", (("surface", "speech"),)]
    ended = sum(value for (name, _), value in after.items() if name == "tts_request_outcomes_total")
    assert received == ended == 4 * 6 + 100
    assert after["tts_request_latency_seconds_count", (("surface", "speech"),)] == received
    assert after["tts_audio_seconds_total", ()] > 0
    assert any(name == "tts_errors_total" for name, _ in after)
    assert after["tts_process_resident_bytes", ()] > 1e6
    assert after["tts_requests_in_flight", ()] == 0


async def test_the_link_route_of_guide_001(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post("/tts", json={"text": "Hello there.", "voice": 2222})
    assert answer.status_code == 200
    url = answer.json()["url"]
    assert re.fullmatch(r"/download/[A-Za-z0-9_-]{22}", url)
    sound = await live.client.get(url)
    assert sound.headers["content-type"] == "audio/wav"
    with wave.open(io.BytesIO(sound.content)) as file:
        assert file.getframerate() == 24_000
        assert file.getnframes() == pytest.approx(0.3 * 24_000, rel=0.2)
    assert live.engine.jobs[0].stream.job.voice.id == "seed:2222"
    long = await live.client.post("/tts", json={"text": "a" * 1001})
    assert (long.status_code, long.json()) == (400, {"detail": "text too long"})
    assert (await live.client.post("/tts", json={"text": "a" * 1000})).status_code == 200
    for body in ({}, {"text": 3}, {"text": "…"}, {"text": "a", "voice": -1}):
        bad = await live.client.post("/tts", json=body)
        assert bad.status_code == 400
        assert bad.json()["error"]["param"] in {"text", "voice"}


NAMES = (
    "..%2fsecret", "%2e%2e%2f", "..%252f", "%2fetc%2fpasswd", "%00", "a" * 300, "missing", ".",
    "A" * 22,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
async def test_downloads_by_any_other_name(start: StartServer, name: str) -> None:
    live = await start()
    answer = await live.client.get(f"/download/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


async def test_ranges_of_a_download(start: StartServer) -> None:
    live = await start()
    url = (await live.client.post("/tts", json={"text": "Hello there."})).json()["url"]
    many = "bytes=" + ",".join(f"{n}-{n}" for n in range(3000))
    for header in ("bytes=0-9", "bytes=-5", "bytes=9-0", "bytes=abc", "bytes=99999999-", many):
        answer = await live.client.get(url, headers={"Range": header[:15_000]})
        assert answer.status_code in {200, 206, 400, 416}


def test_links_end_and_belong_to_one_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    shelf = DownloadShelf(lambda: clock[0])
    name = shelf.put(b"sound", "ann")
    path = shelf.get(name, "ann")
    assert path.read_bytes() == b"sound"
    with pytest.raises(NotFoundError):
        shelf.get(name, "bob")
    clock[0] = 599.0
    shelf.get(name, "ann")
    clock[0] = 600.0
    with pytest.raises(NotFoundError):
        shelf.get(name, "ann")
    assert path.exists()
    clock[0] = 700.0
    monkeypatch.setattr(downloads, "MAX_BYTES", 8)
    shelf.put(b"sound", "ann")
    assert not path.exists()
    with pytest.raises(Exception, match="room"):
        shelf.put(b"sound", "ann")
    shelf.close()


async def test_the_samples_route_of_guide_004(start: StartServer) -> None:
    live = await start()
    body = {"text": "Hello there.", "speaker": "alloy", "speed": 1.0}
    answer = await live.client.post("/v1/tts", json=body)
    assert answer.status_code == 200
    got = answer.json()
    assert set(got) == {"audio_data", "sample_rate", "inference_time_ms"}
    assert got["sample_rate"] == 24_000
    assert len(got["audio_data"]) == pytest.approx(0.3 * 24_000, rel=0.2)
    assert max(map(abs, got["audio_data"])) <= 1
    for change in ({"text": ""}, {"text": "a" * 501}, {"speed": 0.4}, {"speed": 2.1}):
        bad = await live.client.post("/v1/tts", json={**body, **change})
        assert (bad.status_code, bad.json()["error"]["param"]) == (400, next(iter(change)))


async def test_text_reports(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post("/v1/text/normalize", json={"text": "One. Two 🙂."})
    body = answer.json()
    assert body["segments"] == ["One", "Two"]
    assert [d["text"] for d in body["dropped"]] == ["🙂"]
    tokens = (await live.client.post("/v1/text/tokens", json={"text": "One. Two."})).json()
    assert (tokens["input_tokens"], tokens["segments"]) == (6, 2)
    refined = (await live.client.post("/v1/text/refine", json={"text": "One. Two."})).json()
    assert (refined["text"], refined["refined"]) == ("One. Two.", False)
    for route in ("normalize", "refine"):
        bad = await live.client.post(f"/v1/text/{route}", json={"text": []})
        assert (bad.status_code, bad.json()["error"]["param"]) == (400, "text")
    bad = await live.client.post("/v1/text/tokens", json={"text": 3})
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "text")


async def test_log_lines_are_json_without_secrets_or_texts(start: StartServer) -> None:
    out = io.StringIO()
    root = logging.getLogger()
    kept = root.handlers, root.level
    configure_logging("info", "json", out)
    try:
        live = await start(api_keys=[KEY])
        secret_text = "the quick brown secret"
        headers = {"Authorization": f"Bearer {KEY}", "X-Request-ID": "find-me"}
        body = {**SPEECH, "input": secret_text}
        await live.client.post("/v1/audio/speech?token=QUERYSECRET", json=body, headers=headers)
        await live.client.post("/v1/audio/speech", json=body, headers={"User-Agent": "a\tb"})
        await live.client.get("/v1/nothing%0a%1b[31m", headers=headers)
    finally:
        root.handlers, root.level = kept
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert any(line.get("request_id") == "find-me" and line["status"] == 200 for line in lines)
    for word in (KEY, secret_text, "QUERYSECRET"):
        assert word not in out.getvalue()


def test_a_log_line_stays_one_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "a\nb\x1b[0m%s", ("c" * 9000,), None)
    assert RequestIdFilter().filter(record)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 8192
    assert json.loads(line)["message"].startswith("a\nb")
