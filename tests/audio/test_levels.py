import numpy as np
import pytest

from chattts_api.audio.edges import EdgeLimits, EdgeTrim
from chattts_api.audio.loudness import (
    CEILING,
    KNEE,
    HighPass,
    Loudness,
    LoudnessTarget,
    level,
    limited,
)
from chattts_api.audio.processing import ProcessorChain, processed
from tests.audio.tones import RATE, rms, speechlike, uneven


def silent(seconds):
    return np.zeros(round(seconds * RATE), np.float32)


def all_of(processor, sound):
    return processed([sound], processor)


@pytest.mark.parametrize("peak", [0.12, 0.3, 0.6, 0.9])
def test_voices_come_to_one_loudness(peak):
    out = all_of(Loudness(), speechlike(3.0, peak=peak))
    assert level(out, RATE) == pytest.approx(-20, abs=2)
    assert np.abs(out).max() < CEILING


def test_the_gain_is_one_and_bounded():
    whisper = speechlike(1.0, peak=0.01)
    loudness = Loudness(target=LoudnessTarget(max_gain_db=6))
    out = all_of(loudness, whisper)
    assert loudness.gain == pytest.approx(10 ** (6 / 20))
    np.testing.assert_array_equal(out[1000:], whisper[1000:] * np.float32(loudness.gain))


def test_a_later_change_of_level_is_kept():
    sound = np.concatenate((speechlike(1.0, peak=0.2), speechlike(1.0, peak=0.4)))
    out = all_of(Loudness(), sound)
    assert rms(out[RATE:]) / rms(out[:RATE]) == pytest.approx(2, rel=0.02)


def test_silence_passes_at_once_and_gets_no_gain():
    loudness = Loudness()
    assert len(loudness.push(silent(2.0))) == 2 * RATE
    assert len(loudness.push(speechlike(0.2))) < 0.1 * RATE
    assert len(loudness.flush()) > 0.1 * RATE
    assert all_of(Loudness(), silent(1.0)).any() == np.False_


def test_a_known_gain_waits_for_nothing():
    sound = speechlike(0.1, peak=0.3)
    np.testing.assert_array_equal(Loudness(gain=2.0).push(sound), sound * np.float32(2))


def test_the_limiter_bends_and_never_breaks():
    ramp = np.linspace(-4, 4, 8001, dtype=np.float32)
    out = limited(ramp)
    quiet = np.abs(ramp) <= KNEE
    np.testing.assert_array_equal(out[quiet], ramp[quiet])
    assert np.abs(out).max() <= CEILING
    assert (np.diff(out) >= 0).all()
    assert np.abs(np.diff(out)).max() <= 0.0011


def test_the_high_pass_takes_rumble_and_leaves_speech():
    t = np.arange(2 * RATE) / RATE
    rumble, voice = (np.sin(2 * np.pi * f * t).astype(np.float32) for f in (15, 200))
    assert rms(all_of(HighPass(), rumble)[RATE:]) < 0.1 * rms(rumble)
    assert rms(all_of(HighPass(), voice)) == pytest.approx(rms(voice), rel=0.02)
    assert abs(all_of(HighPass(), voice + np.float32(0.2))[RATE:].mean()) < 1e-3


def test_silence_at_the_edges_is_cut_to_what_is_kept():
    speech = speechlike(1.0)
    out = all_of(EdgeTrim(), np.concatenate((silent(0.3), speech, silent(0.35))))
    assert len(out) / RATE == pytest.approx(1.06, abs=0.005)
    assert rms(out[round(0.03 * RATE) :][: len(speech)]) == pytest.approx(rms(speech), rel=0.01)


def test_trimming_is_bounded():
    limits = EdgeLimits(max_trim_s=0.2)
    out = all_of(
        EdgeTrim(limits=limits), np.concatenate((silent(1.0), speechlike(1.0), silent(0.8)))
    )
    assert len(out) / RATE == pytest.approx(0.8 + 1.0 + 0.6, abs=0.005)


def test_pauses_inside_are_left_alone():
    sound = np.concatenate((speechlike(0.5), silent(1.5), speechlike(0.5, seed=1)))
    assert len(all_of(EdgeTrim(), sound)) == pytest.approx(len(sound), abs=0.002 * RATE)


def test_the_edges_fade_from_and_to_nothing():
    loud = np.full(RATE, 0.5, np.float32)
    out = all_of(EdgeTrim(), loud)
    num_fade = round(0.008 * RATE)
    assert len(out) == RATE
    assert abs(out[0]) < 0.005
    assert abs(out[-1]) < 0.005
    assert (np.diff(out[:num_fade]) > 0).all()
    assert (np.diff(out[-num_fade:]) < 0).all()
    np.testing.assert_array_equal(out[num_fade:-num_fade], loud[num_fade:-num_fade])


def test_sound_is_not_held_back_silence_is():
    trim = EdgeTrim()
    assert len(trim.push(speechlike(0.5))) >= 0.48 * RATE
    trim.push(silent(0.2))
    assert len(trim.push(speechlike(0.5))) >= 0.69 * RATE


def test_silence_alone_is_nothing():
    assert len(all_of(EdgeTrim(), silent(0.2))) == 0
    assert len(all_of(EdgeTrim(), silent(0))) == 0


def sounds():
    rng = np.random.default_rng(5)
    for seed in range(12):
        yield np.concatenate(
            [
                part
                for number in range(4)
                for part in (
                    silent(rng.uniform(0, 0.8)),
                    speechlike(rng.uniform(0.001, 0.4), seed=seed * 4 + number, peak=0.3),
                )
            ]
            + [silent(rng.uniform(0, 0.8))]
        )


@pytest.mark.parametrize(
    "make",
    [
        EdgeTrim,
        Loudness,
        HighPass,
        lambda: ProcessorChain([HighPass(), EdgeTrim(), Loudness()]),
    ],
    ids=["edges", "loudness", "high-pass", "chain"],
)
def test_how_it_is_cut_changes_nothing(make):
    for number, sound in enumerate(sounds()):
        whole = processed([sound], make())
        for largest in (50, 2000, 9000):
            joined = processed(uneven(sound, seed=number, largest=largest), make())
            np.testing.assert_allclose(joined, whole, rtol=0, atol=1e-7)
