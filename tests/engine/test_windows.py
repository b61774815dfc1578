import itertools

import numpy as np
import pytest

from chattts_api.engine.joiner import WindowJoiner
from chattts_api.engine.windows import FRAME_SAMPLES, PROFILES, StreamProfile, WindowCursor
from chattts_api.types import SAMPLE_RATE, STEP_SAMPLES

profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def walk(profile, num_steps):
    """The windows of a row that ends after num_steps, as the engine takes them."""
    cursor = WindowCursor(profile)
    windows = [cursor.take() for step in range(1, num_steps) if step == cursor.due_at]
    return windows + cursor.take_rest(num_steps)


@profiles
@pytest.mark.parametrize("num_steps", [1, 3, 7, 50, 51, 150, 937])
def test_windows_cover_every_step_once(profile, num_steps):
    windows = walk(profile, num_steps)
    assert [w.begin for w in windows] == [0, *(w.end for w in windows[:-1])]
    assert windows[-1].end == windows[-1].stop == num_steps
    assert [w.is_last for w in windows] == [False] * (len(windows) - 1) + [True]
    assert sum(w.num_samples for w in windows) == (2 * num_steps - 1) * FRAME_SAMPLES


@profiles
def test_every_window_has_its_context(profile):
    for window in walk(profile, 400):
        assert window.begin - window.start == min(window.begin, profile.left)
        if not window.is_last:
            assert window.stop - window.end == profile.right(window.index)


@profiles
def test_boundaries_do_not_depend_on_when_windows_are_taken(profile):
    late = WindowCursor(profile).take_rest(300)
    boundaries = [w.end for w in walk(profile, 300)][:-1]
    assert [w.end for w in late][:-1] == boundaries[: len(late) - 1]


@profiles
def test_perfect_windows_join_without_a_trace(profile):
    """If decoding were local, the join would be the whole."""
    num_steps = 333
    whole = np.random.default_rng(0).standard_normal((2 * num_steps - 1) * FRAME_SAMPLES)
    whole = whole.astype(np.float32)
    joiner = WindowJoiner(profile)
    pieces = []
    for window in walk(profile, num_steps):
        begin = window.start * STEP_SAMPLES
        decoded = whole[begin : begin + (2 * window.num_steps - 1) * FRAME_SAMPLES]
        pieces.append(joiner.join(window, decoded))
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-6)


def test_a_step_between_windows_is_faded():
    profile = StreamProfile("test", (4,), (2,), left=2, fade=256)
    joiner = WindowJoiner(profile)
    sound = [
        joiner.join(window, np.full((2 * window.num_steps - 1) * FRAME_SAMPLES, level, np.float32))
        for window, level in zip(walk(profile, 12), itertools.count(), strict=False)
    ]
    assert np.abs(np.diff(np.concatenate(sound))).max() < 0.02


def test_silence_counts_only_after_speech():
    profile = StreamProfile("test", (8,), (2,), left=2, fade=256)
    joiner = WindowJoiner(profile)
    windows = walk(profile, 200)
    silent = [np.zeros((2 * w.num_steps - 1) * FRAME_SAMPLES, np.float32) for w in windows]
    for window, decoded in zip(windows[:5], silent, strict=False):
        joiner.join(window, decoded)
    assert joiner.silence_after_speech_s == 0
    joiner.join(windows[5], silent[5] + np.float32(0.1))
    assert joiner.silence_after_speech_s < 0.02
    for window, decoded in zip(windows[6:12], silent[6:12], strict=True):
        joiner.join(window, decoded)
    spoken = sum(w.num_samples for w in windows[6:12]) / SAMPLE_RATE
    assert joiner.silence_after_speech_s == pytest.approx(spoken, abs=0.03)
