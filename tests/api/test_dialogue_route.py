"""POST /v1/audio/dialogue: one file of several speakers, as audio or as events."""

import base64
import io
import json
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from fastapi import FastAPI

from chattts_api.api.dialogue import dialogue_routes
from chattts_api.api.services import Services
from chattts_api.errors import GenerationFailedError
from tests.api.conftest import StartServer
from tests.fakes import ScriptedEngine, ScriptedJob, speak_all, tone

SCRIPT = "Anna: Hello.\nBen: Hi there.\n[pause 1s]\nAnna: Good bye."
ASKED = {
    "script": SCRIPT,
    "roles": {"Anna": {"voice": "nova"}, "Ben": {"voice": "onyx", "speed": 1.0}},
    "gap": 0.5,
    "response_format": "pcm",
}


def mount(app: FastAPI, services: Services) -> None:
    app.include_router(dialogue_routes(services))


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [line for line in answer.text.split("\n\n") if line]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def test_the_turns_are_one_sound_with_their_voices(start: StartServer) -> None:
    live = await start(ScriptedEngine(seconds=0.5), mount_ui=mount)
    answer = await live.client.post("/v1/audio/dialogue", json=ASKED)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/pcm"
    assert answer.headers["x-engine"] == "espeak"
    # Three turns of 0.5 s, the gap of 0.5 s, and the pause of 1 s.
    assert len(answer.content) == round(24000 * (1.5 + 0.5 + 1.0)) * 2
    voices = [job.stream.job.voice.id for job in live.engine.jobs]
    assert voices == ["nova", "onyx", "nova"]
    await live.at_rest()


@pytest.mark.parametrize("kind", ["srt", "vtt"])
async def test_subtitles_travel_as_an_event_beside_the_same_sound(
    start: StartServer, kind: str
) -> None:
    live = await start(ScriptedEngine(seconds=0.5), mount_ui=mount)
    plain = await live.client.post("/v1/audio/dialogue", json=ASKED)
    told = events(await live.client.post("/v1/audio/dialogue", json={**ASKED, "subtitles": kind}))
    sound = b"".join(base64.b64decode(e["audio"]) for e in told if "audio" in e)
    assert sound == plain.content
    turns = [(e["role"], e["start"], e["end"]) for e in told if e["type"] == "dialogue.turn"]
    assert turns == [("Anna", 0.0, 0.5), ("Ben", 1.0, 1.5), ("Anna", 2.5, 3.0)]
    subtitles = next(e for e in told if e["type"] == "dialogue.subtitles")
    assert subtitles["estimated"] is True
    assert "Good bye." in subtitles["text"]
    assert ("00:00:02,500" if kind == "srt" else "<v Anna>Good bye.") in subtitles["text"]
    assert told[-1]["type"] == "speech.audio.done"


async def test_music_lies_under_it_and_rings_out(start: StartServer) -> None:
    out = io.BytesIO()
    soundfile.write(out, tone(2.0, 600), 24000, format="FLAC")
    music = {"data": base64.b64encode(out.getvalue()).decode(), "level_db": -3}
    live = await start(ScriptedEngine(seconds=0.5), mount_ui=mount)
    answer = await live.client.post("/v1/audio/dialogue", json={**ASKED, "music": music})
    sound = np.frombuffer(answer.content, "<i2")
    assert len(sound) > 24000 * 4.5
    pause = sound[round(24000 * 1.9) : round(24000 * 2.4)]
    assert np.abs(pause).max() > 300


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"script": None}, "invalid_value"),
        ({"turns": [{"text": "x"}]}, "invalid_value"),
        ({"script": "  "}, "empty_input"),
        ({"script": "Anna: 😀"}, "empty_input"),
        ({"roles": {"Anna": {"voice": "nobody"}}}, "voice_not_found"),
        ({"roles": {"Anna": {"speed": 9}}}, "invalid_value"),
        ({"gap": -1}, "invalid_value"),
        ({"subtitles": "ass"}, "invalid_value"),
        ({"music": {"data": "?"}}, "invalid_value"),
        ({"music": {"data": "AAAA"}}, "invalid_audio"),
    ],
)
async def test_a_bad_dialogue_is_refused_before_anything_is_spoken(
    start: StartServer, change: dict[str, Any], code: str
) -> None:
    live = await start(mount_ui=mount)
    answer = await live.client.post("/v1/audio/dialogue", json={**ASKED, **change})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert live.engine.jobs == []


async def test_a_failure_in_the_middle_breaks_the_answer_off(start: StartServer) -> None:
    async def second_fails(engine: ScriptedEngine, job: ScriptedJob) -> None:
        if job.stream.job.voice.id == "onyx":
            raise GenerationFailedError("no")
        await speak_all(engine, job)

    live = await start(ScriptedEngine(script=second_fails), mount_ui=mount)
    with pytest.raises(httpx.RemoteProtocolError):
        await live.client.post("/v1/audio/dialogue", json=ASKED)
    await live.at_rest()


async def test_leaving_frees_the_rows(start: StartServer) -> None:
    live = await start(ScriptedEngine(seconds=60, pace_s=0.01), mount_ui=mount)
    async with live.client.stream("POST", "/v1/audio/dialogue", json=ASKED) as answer:
        async for _ in answer.aiter_bytes():
            break
    await live.at_rest()
    assert all(job.is_aborted for job in live.engine.jobs)
