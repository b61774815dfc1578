import hashlib
import json
import math

import numpy as np
import pytest

from chattts_api.types import SPEAKER_SIZE
from chattts_api.voices.builtin import BUILTIN_VOICES, DATA_FILE, builtin_voices, render
from chattts_api.voices.generator import MAX_SEED, _log, normals, sample_speaker, speaker_stats

SPEAKERS = {
    0: "1e4c8a145d264fc0",
    1: "8ab342b76a544224",
    42: "83993664cdaed374",
    MAX_SEED: "bc91c3d8b51c9aa2",
}


@pytest.mark.parametrize("seed", SPEAKERS)
def test_a_seed_is_the_same_speaker_everywhere(seed):
    digest = hashlib.sha256(sample_speaker(seed).astype("<f2").tobytes()).hexdigest()
    assert digest[:16] == SPEAKERS[seed]


def test_normals_are_bit_exact():
    """Full doubles, not rounded: the generator itself must not depend on the platform."""
    digest = hashlib.sha256(normals(42, 10_000).astype("<f8").tobytes()).hexdigest()
    assert digest[:16] == "ec07b96be912f91a"


def test_normals_are_normal():
    values = np.concatenate([normals(seed, 1_000) for seed in range(200)])
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1) < 0.01
    assert abs((values**4).mean() - 3) < 0.1
    for z in (-2.0, -1.0, 0.0, 1.0, 2.0):
        expected = 0.5 * (1 + math.erf(z / math.sqrt(2)))
        assert abs((values < z).mean() - expected) < 0.005


def test_a_prefix_does_not_depend_on_the_count():
    """Nor does a neighbouring seed give a shifted sequence."""
    np.testing.assert_array_equal(normals(7, 768)[:700], normals(7, 700))
    assert not set(normals(7, 768)) & set(normals(8, 768))


def test_log_is_the_logarithm():
    values = np.concatenate([np.linspace(1e-9, 1 - 1e-9, 10_001), 2.0 ** -np.arange(1.0, 60)])
    np.testing.assert_allclose(_log(values), np.log(values), rtol=1e-14)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_seeds_have_a_range(seed):
    with pytest.raises(ValueError, match="2\\^63"):
        sample_speaker(seed)


def test_speakers_follow_the_statistics():
    mean, std = speaker_stats()
    speakers = np.stack([sample_speaker(seed).astype(np.float64) for seed in range(400)])
    z = (speakers - mean) / std
    assert speakers.shape[1] == SPEAKER_SIZE
    assert abs(z.mean()) < 0.01
    assert abs(z.std() - 1) < 0.01


def test_the_data_file_is_what_the_generator_makes():
    assert DATA_FILE.read_text(encoding="utf-8") == render()
    assert "CC BY-NC 4.0" in json.loads(DATA_FILE.read_text(encoding="utf-8"))["attribution"]


def test_built_in_voices():
    names = "alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar"
    voices = builtin_voices()
    assert list(voices)[:13] == names.split(" ")
    assert all(voice_id.isascii() and voice_id.isidentifier() for voice_id in voices)
    assert len({v.name for v in voices.values()}) == len(BUILTIN_VOICES) == len(voices)
    assert len({v.speaker.tobytes() for v in voices.values()}) == len(voices)
    assert {v.gender for v in voices.values()} == {"female", "male", "neutral"}
    for voice in BUILTIN_VOICES:
        np.testing.assert_array_equal(voices[voice.id].speaker, sample_speaker(voice.seed))
