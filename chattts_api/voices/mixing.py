"""Arithmetic on voices: mixes, neighbours, and a map for a plot.

A mix is the weighted mean of the vectors as they are stored, before the model normalises them:
there the statistics are known, and a vector's length is part of the voice it came from. Distances
are measured in units of each dimension's standard deviation, because the mean that all voices
share would otherwise make every pair look alike.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from chattts_api.errors import InvalidRequestError
from chattts_api.voices.generator import Doubles, speaker_stats
from chattts_api.voices.vector import SpeakerVector, as_speaker

MAX_MIXED: Final = 16


def mix_speakers(parts: Sequence[tuple[SpeakerVector, float]]) -> SpeakerVector:
    """The weighted mean of 2 to 16 speakers; weights are parts of their sum.

    Raises:
        InvalidRequestError: too few or many, a weight that is negative or not finite, all zero.
        InvalidSpeakerError: the speakers cancel each other.
    """
    if not 2 <= len(parts) <= MAX_MIXED:
        raise InvalidRequestError(f"A mix takes 2 to {MAX_MIXED} voices.", param="voices")
    weights = np.array([weight for _, weight in parts], dtype=np.float64)
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total) or weights.min() < 0 or total <= 0:
        raise InvalidRequestError(
            "Weights are finite, not negative, and not all zero.", param="weights"
        )
    vectors = np.stack([as_speaker(vector).astype(np.float64) for vector, _ in parts])
    return as_speaker((weights / total) @ vectors)


def similarity(one: SpeakerVector, other: SpeakerVector) -> float:
    """-1 to 1: how far two speakers differ from the mean in the same direction."""
    a, b = _standardised([one, other])
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norms) if norms else 0.0


def neighbours(
    speaker: SpeakerVector, others: Sequence[SpeakerVector], count: int = 5
) -> list[tuple[int, float]]:
    """Index and similarity of the nearest of the others, the nearest first."""
    scored = [(index, similarity(speaker, other)) for index, other in enumerate(others)]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:count]


def speaker_map(speakers: Sequence[SpeakerVector]) -> Doubles:
    """Two coordinates a speaker [N, 2]: the first principal components, each sign fixed."""
    points = np.zeros((len(speakers), 2))
    if len(speakers) < 2:
        return points
    z = _standardised(speakers)
    z -= z.mean(axis=0)
    left, scales, _ = np.linalg.svd(z, full_matrices=False)
    rank = min(2, len(scales))
    points[:, :rank] = left[:, :rank] * scales[:rank]
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return np.asarray(points * np.where(largest < 0, -1.0, 1.0), dtype=np.float64)


def _standardised(speakers: Sequence[SpeakerVector]) -> Doubles:
    mean, std = speaker_stats()
    return np.asarray((np.stack(speakers).astype(np.float64) - mean) / std, dtype=np.float64)
