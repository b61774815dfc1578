"""Background music under speech: looped, levelled, ducked where somebody speaks, faded at the ends.

Streaming: each piece of speech goes in, the same number of mixed samples comes out.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from chattts_api.types import SAMPLE_RATE, Samples

FRAME: Final = SAMPLE_RATE // 50
FADE_IN_S: Final = 0.8
TAIL_S: Final = 2.0
_SPEECH_RMS: Final = 0.01  # -40 dBFS: breath and room noise stay below
_ATTACK_S: Final = 0.08
_RELEASE_S: Final = 0.6
_HOLD_FRAMES: Final = 15  # music does not swell between words


@dataclass(frozen=True, slots=True)
class MusicLevels:
    """Decibels: of the music alone against usual speech, and of it under speech."""

    level_db: float = -8.0
    duck_db: float = -10.0
    """What is taken away, as a negative number, while somebody speaks."""


class MusicBed:
    """Mixes one music file under one stream of speech."""

    def __init__(self, music: Samples, levels: MusicLevels) -> None:
        assert len(music)
        rms = float(np.sqrt(np.mean(np.square(music, dtype=np.float64))))
        self._music = (music * (_gain(levels.level_db) * 0.1 / max(rms, 1e-4))).astype(np.float32)
        self._ducked = _gain(levels.duck_db)
        self._at = 0
        self._gain = self._last_gain = 1.0
        self._quiet_frames = _HOLD_FRAMES
        self._held = np.zeros(0, np.float32)

    def push(self, speech: Samples) -> Samples:
        """Speech with music under it; up to a frame of it is held back."""
        sound = np.concatenate((self._held, speech))
        whole = len(sound) // FRAME * FRAME
        self._held = sound[whole:]
        return self._mixed(sound[:whole])

    def finish(self) -> Samples:
        """The rest of the speech, and the music fading away."""
        rest, self._held = self._held, np.zeros(0, np.float32)
        padded = np.pad(rest, (0, -len(rest) % FRAME))
        tail = self._mixed(
            np.concatenate((padded, np.zeros(int(TAIL_S * SAMPLE_RATE), np.float32)))
        )
        fade = np.minimum(1.0, np.arange(len(tail), 0, -1) / (TAIL_S * SAMPLE_RATE))
        speech = np.pad(rest, (0, len(tail) - len(rest)))
        return ((tail - speech) * fade + speech).astype(np.float32)

    def _mixed(self, speech: Samples) -> Samples:
        if not len(speech):
            return speech
        frames = speech.reshape(-1, FRAME)
        gains = self._ramped(self._gains(frames))
        indices = np.arange(self._at, self._at + len(speech))
        fade_in = np.minimum(1.0, indices / (FADE_IN_S * SAMPLE_RATE))
        under = self._music[indices % len(self._music)] * gains * fade_in
        self._at += len(speech)
        return np.clip(speech + under, -1.0, 1.0).astype(np.float32)

    def _ramped(self, gains: Samples) -> Samples:
        """Straight lines from gain to gain: a step at a frame's edge would click."""
        ends = np.concatenate(([self._last_gain], gains))
        self._last_gain = float(gains[-1])
        at = np.arange(len(gains) * FRAME) / FRAME
        return np.interp(at, np.arange(len(ends)), ends).astype(np.float32)

    def _gains(self, frames: Samples) -> Samples:
        """One gain a frame, moving towards what the frame asks for."""
        rms = np.sqrt(np.mean(np.square(frames), axis=1))
        gains = np.empty(len(frames), np.float32)
        frame_s = FRAME / SAMPLE_RATE
        for i, level in enumerate(rms):
            self._quiet_frames = 0 if level > _SPEECH_RMS else self._quiet_frames + 1
            is_speech = self._quiet_frames < _HOLD_FRAMES
            target = self._ducked if is_speech else 1.0
            pace = frame_s / (_ATTACK_S if target < self._gain else _RELEASE_S)
            self._gain += (target - self._gain) * min(1.0, pace)
            gains[i] = self._gain
        return gains


def _gain(decibels: float) -> float:
    return float(10 ** (decibels / 20))
