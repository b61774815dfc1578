import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chattts_api.errors import (
    InvalidRequestError,
    InvalidSpeakerError,
    SpeechError,
    VoiceNotFoundError,
)
from chattts_api.types import Voice
from chattts_api.voices.catalog import VoiceCatalog
from chattts_api.voices.codes import encode_sample, encode_speaker
from chattts_api.voices.generator import MAX_SEED, sample_speaker
from chattts_api.voices.store import VoiceStore


@pytest.fixture
def store(tmp_path):
    return VoiceStore(tmp_path / "voices")


@pytest.fixture
def catalog(store):
    return VoiceCatalog(store)


def voice(name, seed=5):
    return Voice(id="", name=name, speaker=sample_speaker(seed))


@pytest.mark.parametrize("text", ["alloy", "ALLOY", " Alloy ", {"id": "alloy"}])
def test_built_in_voices_are_found_in_any_case(text):
    assert VoiceCatalog().resolve(text).id == "alloy"


def test_a_chinese_name_is_a_name(catalog):
    assert catalog.resolve("清荷").id == catalog.resolve("QINGHE").id == "qinghe"


@pytest.mark.parametrize("seed", [0, 1234, MAX_SEED])
def test_a_seed_is_a_voice(catalog, seed):
    found = catalog.resolve(f"Seed:{seed}")
    assert found.id == f"seed:{seed}"
    np.testing.assert_array_equal(found.speaker, sample_speaker(seed))


@pytest.mark.parametrize("text", ["seed:", "seed:-1", "seed:1.5", f"seed:{MAX_SEED + 1}", "seed:٣"])
def test_a_seed_has_a_range(catalog, text):
    with pytest.raises(VoiceNotFoundError, match="0 to 2"):
        catalog.resolve(text)


def test_a_code_is_a_voice(catalog):
    found = catalog.resolve(encode_speaker(sample_speaker(3)) + "\n")
    np.testing.assert_array_equal(found.speaker, sample_speaker(3))
    assert found.id == catalog.resolve({"id": encode_speaker(sample_speaker(3))}).id
    assert found.id != catalog.resolve(encode_speaker(sample_speaker(4))).id


@pytest.mark.parametrize(
    "text",
    [
        "一一一一㵢",
        "一一一一㵢" * 2_000,
        "蘁淰" * 50,
        "x" * 4_097,
        encode_speaker(sample_speaker(3))[:-9],
        encode_speaker(sample_speaker(3))[:-1] + "x",
        encode_sample(np.full((4, 400), 3)),
    ],
    ids=ascii,
)
def test_a_bad_code_is_told_as_such(catalog, text):
    with pytest.raises(InvalidSpeakerError):
        catalog.resolve(text)


@pytest.mark.parametrize(
    "text",
    ["", "nobody", "../../etc/passwd", "小明", "😀", "\ud800", "v_" + "A" * 22, "\0", "é" * 4_096],
    ids=ascii,
)
def test_an_unknown_voice_says_where_voices_are_listed(catalog, text):
    with pytest.raises(VoiceNotFoundError) as caught:
        catalog.resolve(text)
    message = caught.value.message
    assert "GET /v1/audio/voices" in message
    assert "alloy" in message
    assert len(message.encode()) < 1_024
    assert not text or text not in message
    assert caught.value.param == "voice"


@pytest.mark.parametrize("value", [None, 5, ["alloy"], {}, {"id": 5}, {"id": None}])
def test_a_voice_is_a_string_or_an_id(catalog, value):
    with pytest.raises(InvalidRequestError):
        catalog.resolve(value)


def test_saved_voices_are_found_by_id_and_name(catalog, store):
    saved = store.save(voice("小明"), "ann")
    for text in (saved.id, "小明", {"id": saved.id}):
        assert catalog.resolve(text, "ann").id == saved.id
    assert saved.id in [v.id for v in catalog.list("ann")]


def test_saved_voices_are_private(catalog, store):
    saved = store.save(voice("小明"), "ann")
    shared = store.save(voice("everyone"))
    for owner in (None, "bob"):
        for text in (saved.id, "小明"):
            with pytest.raises(VoiceNotFoundError):
                catalog.resolve(text, owner)
        assert saved.id not in [v.id for v in catalog.list(owner)]
        assert catalog.resolve("Everyone", owner).id == shared.id


def test_an_owners_voice_comes_before_a_shared_one(catalog, store):
    store.save(voice("narrator"))
    own = store.save(voice("Narrator"), "ann")
    assert catalog.resolve("narrator", "ann").id == own.id


def test_list_begins_with_the_built_in_voices(catalog, store):
    store.save(voice("zoe"))
    names = [v.id for v in catalog.list()]
    assert names[0] == "alloy"
    assert len(names) == 21


def test_no_string_is_a_crash(catalog):
    rng = np.random.default_rng(3)
    alphabet = [*"../%\\:*?<>|\"' \t\n\0seed:0123456789v_-", "一", "㴁", "㵢", "😀", "\ud800", "é"]
    for _ in range(2_000):
        text = "".join(rng.choice(alphabet, int(rng.integers(0, 90))))
        with pytest.raises(SpeechError) as caught:
            catalog.resolve(text)
        assert caught.value.status == 400


def test_voices_and_the_hub_need_no_torch():
    program = (
        "import sys, chattts_api.voices.catalog, chattts_api.voices.exchange, "
        "chattts_api.voices.mixing, chattts_api.voices.torch_import, chattts_api.model.hub; "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)
