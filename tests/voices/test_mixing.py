import math

import numpy as np
import pytest

from chattts_api.errors import InvalidRequestError, InvalidSpeakerError
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.mixing import mix_speakers, neighbours, similarity, speaker_map

ONE, TWO = sample_speaker(1), sample_speaker(2)


def test_a_mix_is_the_weighted_mean():
    mixed = mix_speakers([(ONE, 3), (TWO, 1)])
    expected = 0.75 * ONE.astype(float) + 0.25 * TWO.astype(float)
    np.testing.assert_allclose(mixed, expected, rtol=1e-3)
    np.testing.assert_array_equal(mixed, mix_speakers([(ONE, 6), (TWO, 2)]))
    np.testing.assert_array_equal(mix_speakers([(ONE, 1), (TWO, 0)]), ONE)


@pytest.mark.parametrize(
    "weights",
    [(1,), (), (0, 0), (-1, 2), (math.nan, 1), (math.inf, 1), (1e308, 1e308), (1,) * 17],
)
def test_weights_are_checked(weights):
    with pytest.raises(InvalidRequestError):
        mix_speakers([(ONE, weight) for weight in weights])


def test_voices_that_cancel_are_no_voice():
    with pytest.raises(InvalidSpeakerError):
        mix_speakers([(ONE, 1), (-ONE, 1)])


def test_neighbours_are_the_most_alike():
    near = mix_speakers([(ONE, 9), (TWO, 1)])
    others = [TWO, *(sample_speaker(n) for n in range(3, 20)), near]
    (first, score), (second, lower) = neighbours(ONE, others, count=2)
    assert first == len(others) - 1
    assert score > 0.9 > lower
    assert second != first
    assert similarity(ONE, ONE) == pytest.approx(1)
    assert abs(similarity(ONE, TWO)) < 0.2


def test_the_map_keeps_groups_together():
    pairs = [(mix_speakers([(ONE, 9), (sample_speaker(n), 1)]), 0) for n in range(10, 16)]
    pairs += [(mix_speakers([(TWO, 9), (sample_speaker(n), 1)]), 1) for n in range(20, 26)]
    points = speaker_map([speaker for speaker, _ in pairs])
    assert points.shape == (12, 2)
    first, second = points[:6].mean(axis=0), points[6:].mean(axis=0)
    assert np.linalg.norm(first - second) > 5 * points[:6].std(axis=0).max()
    np.testing.assert_array_equal(points, speaker_map([speaker for speaker, _ in pairs]))


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_map_of_few(count):
    points = speaker_map([sample_speaker(n) for n in range(count)])
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()
