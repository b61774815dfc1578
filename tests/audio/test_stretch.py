import numpy as np
import pytest

from chattts_api.audio.resample import Resampler, resample
from chattts_api.audio.stretch import TimeStretch, stretch
from tests.audio.tones import RATE, rms, speechlike, uneven

speeds = pytest.mark.parametrize("speed", [0.25, 0.4, 0.5, 0.75, 1.25, 1.5, 2.0, 2.5, 4.0])


def pitch_hz(samples, rate=RATE):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


@speeds
@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.5, 5.0])
def test_the_duration_is_exact_for_short_and_long(speed, seconds):
    out = stretch(speechlike(seconds), speed, RATE)
    assert len(out) == round(seconds * RATE / speed)
    assert np.isfinite(out).all()


@speeds
def test_the_pitch_stays_and_the_sound_fills_the_time(speed):
    tone = (0.5 * np.sin(2 * np.pi * 300 * np.arange(2 * RATE) / RATE)).astype(np.float32)
    out = stretch(tone, speed, RATE)
    assert pitch_hz(out) == pytest.approx(300, rel=0.01)
    edge = round(0.05 * RATE / speed)
    assert rms(out[edge:-edge]) == pytest.approx(rms(tone), rel=0.05)
    assert rms(out[-edge:]) > 0.25 * rms(tone)


@speeds
def test_events_keep_their_place(speed):
    sound = np.zeros(2 * RATE, np.float32)
    for at_s in (0.5, 1.0, 1.5):
        sound[round(at_s * RATE) :][:240] = 0.8 * np.sin(np.arange(240))
    out = stretch(sound, speed, RATE)
    for at_s in (0.5, 1.0, 1.5):
        around = out[round((at_s - 0.1) / speed * RATE) : round((at_s + 0.1) / speed * RATE)]
        assert np.abs(around).max() > 0.2


@speeds
def test_how_it_is_cut_changes_nothing(speed):
    sound = speechlike(1.7)
    stretcher = TimeStretch(speed, RATE)
    joined = np.concatenate([*(stretcher.push(p) for p in uneven(sound)), stretcher.flush()])
    np.testing.assert_array_equal(joined, stretch(sound, speed, RATE))


@speeds
def test_sound_leaves_while_more_comes(speed):
    stretcher = TimeStretch(speed, RATE)
    num_out = sum(len(stretcher.push(p)) for p in uneven(speechlike(2.0)))
    assert num_out / RATE > (2.0 - 0.25) / speed


def test_speed_1_is_the_identity():
    sound = speechlike(0.3)
    stretcher = TimeStretch(1.0, RATE)
    assert stretcher.push(sound) is sound
    assert len(stretcher.flush()) == 0


def test_nothing_in_nothing_out():
    stretcher = TimeStretch(2.0, RATE)
    assert len(stretcher.push(np.zeros(0, np.float32))) == 0
    assert len(stretcher.flush()) == 0


@pytest.mark.parametrize("to_hz", [8000, 16000, 22050, 44100, 48000])
def test_resampled_streams_are_the_resampled_whole(to_hz):
    sound = speechlike(1.234)
    resampler = Resampler(RATE, to_hz)
    joined = np.concatenate([*(resampler.push(p) for p in uneven(sound)), resampler.flush()])
    whole = resample(sound, RATE, to_hz)
    np.testing.assert_array_equal(joined, whole)
    assert len(whole) == round(len(sound) * to_hz / RATE)


def test_resampling_there_and_back_keeps_what_fits():
    low = speechlike(1.0)
    back = resample(resample(low, RATE, 48_000), 48_000, RATE)
    assert rms((back - low)[200:-200]) < 0.01 * rms(low)


def test_what_does_not_fit_is_not_folded_down():
    tone = np.sin(2 * np.pi * 7000 * np.arange(RATE) / RATE).astype(np.float32)
    assert rms(resample(tone, RATE, 8000)[200:-200]) < 0.02
