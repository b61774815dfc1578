"""POST /v1/audio/speech over a real socket."""

import base64
import json

import httpx
import pytest

from chattts_api.errors import GenerationFailedError
from tests.api.conftest import SPEECH, StartServer
from tests.fakes import CHUNK_S, ScriptedEngine, ScriptedJob, tone

ERROR_KEYS = {"message", "type", "param", "code"}


async def test_speech_is_streamed_with_its_headers(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post(
        "/v1/audio/speech", json={**SPEECH, "response_format": "pcm", "seed": 7}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "audio/pcm"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["x-seed"] == "7"
    assert answer.headers["x-engine"] == "espeak"
    assert answer.headers["x-text-dropped"] == "0"
    assert answer.headers["x-request-id"]
    assert len(answer.content) == pytest.approx(0.3 * 48_000, rel=0.2)


async def test_whole_answer_has_a_length_and_a_true_wav_header(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post(
        "/v1/audio/speech", json={**SPEECH, "response_format": "wav", "stream": False}
    )
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert int.from_bytes(answer.content[40:44], "little") == len(answer.content) - 44
    assert int.from_bytes(answer.content[4:8], "little") == len(answer.content) - 8


async def test_events_carry_one_valid_file_and_end_with_usage(start: StartServer) -> None:
    live = await start()
    body = {**SPEECH, "response_format": "pcm", "stream_format": "sse", "seed": 1}
    events = await live.client.post("/v1/audio/speech", json=body)
    assert events.headers["content-type"].startswith("text/event-stream")
    lines = events.text.split("\n\n")
    assert lines.pop() == ""
    parsed = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert all(line.startswith("data: ") for line in lines)
    audio = b"".join(base64.b64decode(e["audio"]) for e in parsed[:-1])
    plain = await live.client.post(
        "/v1/audio/speech", json={**SPEECH, "response_format": "pcm", "seed": 1}
    )
    assert audio == plain.content
    assert parsed[-1]["type"] == "speech.audio.done"
    usage = parsed[-1]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


@pytest.mark.parametrize("path", ["/v1/audio/speech", "/audio/speech"])
@pytest.mark.parametrize("extra", [{"seed": None, "speed": None, "x": {"y": 1}}, {}])
async def test_null_is_the_default_and_unknown_keys_are_ignored(
    start: StartServer, path: str, extra: dict[str, object]
) -> None:
    live = await start()
    answer = await live.client.post(path, json={**SPEECH, **extra})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "audio/mpeg"


BAD_FIELDS = [
    ("input", 7), ("input", ["a"]), ("input", {}), ("input", "\ud800"),
    ("voice", 1), ("voice", {"name": "alloy"}), ("voice", {"id": 3}),
    ("model", 5), ("response_format", "ogg"), ("response_format", 1),
    ("speed", 0), ("speed", 0.24), ("speed", 4.01), ("speed", "fast"), ("speed", True),
    ("speed", float("nan")), ("speed", float("inf")),
    ("stream_format", "x"), ("stream", "yes"), ("stream", 1),
    ("instructions", 3), ("seed", -1), ("seed", 2**63), ("seed", 1.5), ("seed", 10**400),
    ("temperature", -0.1), ("temperature", 2.1), ("temperature", float("nan")),
    ("top_p", 0), ("top_p", 1.1), ("top_k", 0), ("top_k", 627), ("top_k", 10**9),
    ("repetition_penalty", 0.9), ("repetition_penalty", 2.1), ("speed_token", 10),
    ("refine", 1), ("oral", 10), ("laugh", 3), ("break", 8), ("lang", "fr"),
    ("normalize", "no"), ("lexicon", []), ("lexicon", {"a": 1}), ("lexicon", {"": "x"}),
    ("lexicon", {str(n): "x" for n in range(201)}), ("sample_rate", 11025),
    ("sample_rate", "24000"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
async def test_a_bad_field_is_named(start: StartServer, field: str, value: object) -> None:
    live = await start()
    body = json.dumps({**SPEECH, field: value})
    answer = await live.client.post(
        "/v1/audio/speech", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert set(error) == ERROR_KEYS
    assert error["param"] == field
    assert error["type"] == "invalid_request_error"
    assert len(answer.content) < 2048
    assert not live.engine.jobs


@pytest.mark.parametrize("field", ["model", "input", "voice"])
@pytest.mark.parametrize("is_null", [True, False])
async def test_required_fields(start: StartServer, field: str, is_null: bool) -> None:
    live = await start()
    body: dict[str, object] = {k: v for k, v in SPEECH.items() if k != field}
    answer = await live.client.post(
        "/v1/audio/speech", json={**body, field: None} if is_null else body
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == field


NOT_JSON = [
    b"", b"{", b"nul", b'{"input": "\xff"}', b"[" * 100_000, '{"a": 1}'.encode("utf-16"),
    b'{"input": "a", "input": "b"}', b'{"seed": ' + b"1" * 5000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("body", NOT_JSON, ids=range(len(NOT_JSON)))
async def test_what_is_not_json(start: StartServer, body: bytes) -> None:
    live = await start()
    answer = await live.client.post(
        "/v1/audio/speech", content=body, headers={"content-type": "application/json"}
    )
    expected = 413 if len(body) > 65_536 else 400
    assert answer.status_code == expected
    assert answer.json()["error"]["code"] in {"invalid_json", "content_too_large"}


@pytest.mark.parametrize("body", [b'""', b"[]", b"[1]", b"7", b"null"])
async def test_what_is_not_an_object(start: StartServer, body: bytes) -> None:
    live = await start()
    answer = await live.client.post(
        "/v1/audio/speech", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == ERROR_KEYS


CODES = [
    ({"input": "a" * 4097}, 400, "string_above_max_length"),
    ({"input": "…🙂"}, 400, "empty_input"),
    ({"input": ""}, 400, "empty_input"),
    ({"voice": "nobody"}, 400, "voice_not_found"),
    ({"voice": "一一一一㵢"}, 400, "invalid_speaker"),
    ({"instructions": "x" * 4097}, 400, "string_above_max_length"),
]


@pytest.mark.parametrize(("change", "status", "code"), CODES)
async def test_error_codes(
    start: StartServer, change: dict[str, object], status: int, code: str
) -> None:
    live = await start()
    answer = await live.client.post("/v1/audio/speech", json={**SPEECH, **change})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_a_text_of_the_whole_length_is_spoken(start: StartServer) -> None:
    live = await start()
    answer = await live.client.post("/v1/audio/speech", json={**SPEECH, "input": "a" * 4096})
    assert answer.status_code == 200


async def test_strict_models(start: StartServer) -> None:
    live = await start(strict_models=True)
    answer = await live.client.post("/v1/audio/speech", json={**SPEECH, "model": "gpt-9"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    loose = await start()
    answer = await loose.client.post("/v1/audio/speech", json={**SPEECH, "model": "gpt-9"})
    assert answer.status_code == 200


async def test_media_type_and_compression(start: StartServer) -> None:
    live = await start()
    body = json.dumps(SPEECH)
    for headers in (
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "text/plain"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ):
        answer = await live.client.post("/v1/audio/speech", content=body, headers=headers)
        assert answer.status_code == 415
        assert answer.json()["error"]["code"] == "unsupported_media_type"


async def fail_at_once(engine: ScriptedEngine, job: ScriptedJob) -> None:
    raise GenerationFailedError("No speech came of this text.")


async def fail_after_sound(engine: ScriptedEngine, job: ScriptedJob) -> None:
    for _ in range(5):
        engine.put(job, 0, tone(CHUNK_S), is_last=False)
    raise GenerationFailedError("No speech came of this text.")


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
async def test_a_failure_before_sound_is_an_error_status(
    start: StartServer, stream_format: str
) -> None:
    live = await start(ScriptedEngine(script=fail_at_once))
    answer = await live.client.post(
        "/v1/audio/speech", json={**SPEECH, "stream_format": stream_format}
    )
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "generation_failed"


async def test_a_failure_after_sound_breaks_the_body_off(start: StartServer) -> None:
    live = await start(ScriptedEngine(script=fail_after_sound))
    body = {**SPEECH, "response_format": "pcm"}
    with pytest.raises(httpx.RemoteProtocolError):
        await live.client.post("/v1/audio/speech", json=body)


async def test_a_failure_after_sound_is_told_in_events_and_broken_off(start: StartServer) -> None:
    live = await start(ScriptedEngine(script=fail_after_sound))
    body = {**SPEECH, "response_format": "pcm", "stream_format": "sse"}
    lines: list[str] = []

    async def read() -> None:
        async with live.client.stream("POST", "/v1/audio/speech", json=body) as answer:
            async for line in answer.aiter_lines():
                lines.append(line)  # noqa: PERF401 - what came before the break counts

    with pytest.raises(httpx.RemoteProtocolError):
        await read()
    event = json.loads([line for line in lines if line][-1].removeprefix("data: "))
    assert event["type"] == "speech.audio.error"
    assert set(event["error"]) == ERROR_KEYS


async def test_routes_and_methods_have_the_envelope(start: StartServer) -> None:
    live = await start()
    missing = await live.client.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = await live.client.get("/v1/audio/speech")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    assert set(wrong.json()["error"]) == ERROR_KEYS


async def test_the_request_id_of_the_client_is_kept_when_it_is_one(start: StartServer) -> None:
    live = await start()
    good = await live.client.get("/v1/models", headers={"x-request-id": "abc-1.Z_"})
    assert good.headers["x-request-id"] == "abc-1.Z_"
    bad = await live.client.get("/v1/models", headers={"x-request-id": "a b"})
    assert bad.headers["x-request-id"].startswith("req_")


async def test_a_full_engine_is_a_503_with_retry_after(start: StartServer) -> None:
    live = await start(ScriptedEngine(max_jobs=0))
    answer = await live.client.post("/v1/audio/speech", json=SPEECH)
    assert answer.status_code == 503
    assert answer.json()["error"] == {
        "message": answer.json()["error"]["message"],
        "type": "server_error",
        "param": None,
        "code": "overloaded",
    }
    assert int(answer.headers["retry-after"]) >= 1
