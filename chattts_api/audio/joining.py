"""Joins the segments of one request: pauses between them, short fades at their edges."""

import numpy as np

from chattts_api.types import SAMPLE_RATE, AudioChunk, Samples, Segment

FADE = SAMPLE_RATE * 5 // 1000  # 5 ms: long enough against clicks, too short to hear


def silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * SAMPLE_RATE), dtype=np.float32)


class SegmentJoiner:
    """Takes the chunks of all segments in order, gives continuous sound of the same rate.

    The last `FADE` samples of a segment are held back until its end is known.
    """

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self._segments = segments
        self._held: Samples = silence(0)
        self._is_opening = True
        self._ramp = ((np.arange(FADE) + 0.5) / FADE).astype(np.float32)

    def push(self, chunk: AudioChunk) -> Samples:
        segment = self._segments[chunk.segment]
        pieces: list[Samples] = []
        samples = chunk.samples
        if self._is_opening and len(samples):
            pieces.append(silence(segment.lead_s))
            samples = self._faded_in(samples)
            self._is_opening = False
        sound = np.concatenate((self._held, samples))
        if chunk.is_last:
            pieces += [self._faded_out(sound), silence(segment.pause_s)]
            self._held = silence(0)
            self._is_opening = True
        else:
            cut = max(0, len(sound) - FADE)
            pieces.append(sound[:cut])
            self._held = sound[cut:]
        return np.concatenate(pieces)

    def _faded_in(self, samples: Samples) -> Samples:
        n = min(FADE, len(samples))
        return np.concatenate((samples[:n] * self._ramp[:n], samples[n:]))

    def _faded_out(self, samples: Samples) -> Samples:
        n = min(FADE, len(samples))
        return np.concatenate(
            (samples[: len(samples) - n], samples[len(samples) - n :] * self._ramp[:n][::-1])
        )
