"""Saved voices over HTTP: every source, every refusal, one owner's alone."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI

from chattts_api.api.services import Services
from chattts_api.api.voices import voice_routes
from chattts_api.types import SamplePrompt, Samples, Voice
from chattts_api.voices.codes import encode_speaker
from chattts_api.voices.exchange import export_voice
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.store import VoiceStore
from tests.api.conftest import KEY, StartServer
from tests.fakes import tone

OTHER = "sk-test-key-of-another-0123456789"
CODE = encode_speaker(sample_speaker(7))


class FakeCloner:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[float, str]] = []

    async def clone(self, samples: Samples, transcript: str) -> Voice:
        self.given.append((len(samples) / 24000, transcript))
        codes = np.zeros((4, 10), np.uint16)
        return Voice(id="", name="", sample=SamplePrompt(codes, transcript))


def mount(store: VoiceStore, cloner: FakeCloner | None = None) -> Callable[..., None]:
    def routes(app: FastAPI, services: Services) -> None:
        object.__setattr__(services, "catalog", type(services.catalog)(store))
        app.include_router(voice_routes(services, store, cloner))

    return routes


def headers(key: str = KEY) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def store(tmp_path: Path) -> VoiceStore:
    return VoiceStore(tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        {"code": CODE},
        {"seed": 7},
        {
            "file": base64.b64encode(
                export_voice(Voice("", "x", sample_speaker(7)), "npy").data
            ).decode()
        },
        {"mix": [{"voice": "seed:7", "weight": 1}, {"voice": "seed:8", "weight": 0}]},
    ],
    ids=["code", "seed", "file", "mix"],
)
async def test_a_voice_is_saved_found_spoken_with_exported_and_deleted(
    start: StartServer, store: VoiceStore, source: dict[str, Any]
) -> None:
    live = await start(api_keys=[KEY], mount_ui=mount(store))
    asked = {"name": "我的声音", "gender": "female", "language": "zh", **source}
    made = await live.client.post("/v1/audio/voices", json=asked, headers=headers())
    assert made.status_code == 200, made.text
    voice_id = made.json()["id"]
    one = f"/v1/audio/voices/{voice_id}"
    assert (await live.client.get(one, headers=headers())).json()["name"] == "我的声音"
    code = await live.client.get(f"{one}?format=code", headers=headers())
    assert code.text.strip() == CODE
    spoken = {"model": "tts-1", "input": "Hello.", "voice": voice_id}
    assert (
        await live.client.post("/v1/audio/speech", json=spoken, headers=headers())
    ).status_code == 200
    job_voice = live.engine.jobs[-1].stream.job.voice
    assert job_voice.speaker is not None
    assert np.array_equal(job_voice.speaker, sample_speaker(7))
    gone = await live.client.delete(one, headers=headers())
    assert gone.json() == {"id": voice_id, "object": "audio.voice.deleted", "deleted": True}
    assert (await live.client.get(one, headers=headers())).status_code == 404


async def test_another_key_neither_sees_nor_deletes_a_voice(
    start: StartServer, store: VoiceStore
) -> None:
    live = await start(api_keys=[KEY, OTHER], mount_ui=mount(store))
    made = await live.client.post(
        "/v1/audio/voices", json={"name": "mine", "seed": 1}, headers=headers()
    )
    one = f"/v1/audio/voices/{made.json()['id']}"
    for method in ("GET", "DELETE"):
        answer = await live.client.request(method, one, headers=headers(OTHER))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await live.client.get(one, headers=headers())).status_code == 200


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"name": "a"}, 400, "invalid_value"),
        ({"seed": 1}, 400, "invalid_value"),
        ({"name": "a", "seed": 1, "code": CODE}, 400, "invalid_value"),
        ({"name": "../x", "seed": 1}, 400, "invalid_value"),
        ({"name": "nova", "seed": 1}, 409, "conflict"),
        ({"name": "a", "code": "一一一一㵢"}, 400, "invalid_speaker"),
        ({"name": "a", "file": "????"}, 400, "invalid_value"),
        (
            {"name": "a", "file": base64.b64encode(b"PK\x03\x04x").decode()},
            415,
            "unsupported_media_type",
        ),
        ({"name": "a", "mix": [{"voice": "nova"}]}, 400, "invalid_value"),
        ({"name": "a", "mix": [{"voice": "nova"}, {"voice": "nobody"}]}, 400, "voice_not_found"),
        ({"name": "a", "seed": 1, "gender": "x"}, 400, "invalid_value"),
        ({"name": "a", "sample": "AAAA"}, 400, "invalid_value"),
    ],
)
async def test_what_is_no_voice_is_refused(
    start: StartServer, store: VoiceStore, asked: dict[str, Any], status: int, code: str
) -> None:
    live = await start(mount_ui=mount(store))
    answer = await live.client.post("/v1/audio/voices", json=asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert store.list() == []


async def test_a_form_needs_no_base64(start: StartServer, store: VoiceStore) -> None:
    live = await start(mount_ui=mount(store))
    data = export_voice(Voice("", "x", sample_speaker(9)), "safetensors").data
    answer = await live.client.post(
        "/v1/audio/voices", data={"name": "form"}, files={"file": ("../../x.pt", data)}
    )
    assert answer.status_code == 200, answer.text
    saved = store.list()[0].speaker
    assert saved is not None
    assert np.array_equal(saved, sample_speaker(9))


async def test_a_sample_needs_consent_a_transcript_and_a_fitting_length(
    start: StartServer, store: VoiceStore, tmp_path: Path
) -> None:
    import io

    import soundfile

    def wav(seconds: float) -> str:
        out = io.BytesIO()
        soundfile.write(out, tone(seconds), 24000, format="WAV")
        return base64.b64encode(out.getvalue()).decode()

    cloner = FakeCloner()
    live = await start(mount_ui=mount(store, cloner))
    whole = {"name": "me", "sample": wav(4), "transcript": "Hello.", "consent": True}
    for change, status, code in (
        ({"consent": False}, 403, "forbidden"),
        ({"transcript": " "}, 400, "invalid_value"),
        ({"sample": wav(1)}, 400, "invalid_audio"),
        ({"sample": wav(20)}, 400, "invalid_audio"),
    ):
        answer = await live.client.post("/v1/audio/voices", json={**whole, **change})
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert cloner.given == []
    answer = await live.client.post("/v1/audio/voices", json=whole)
    assert answer.status_code == 200, answer.text
    assert answer.json()["has_sample"] is True
    assert cloner.given == [(4.0, "Hello.")]
