"""Joins one row's windows into gapless sound and notices when it has fallen silent."""

import numpy as np

from chattts_api.engine.windows import StreamProfile, Window
from chattts_api.types import SAMPLE_RATE, Samples

SILENCE_LEVEL = 10 ** (-50 / 20)  # of full scale; the model's own pauses lie 10 dB below that
BLOCK = SAMPLE_RATE // 50


class WindowJoiner:
    """Cross-fades windows and counts the silence at the end of what was spoken."""

    def __init__(self, profile: StreamProfile) -> None:
        self._fade = profile.fade
        # Raised cosine: both sides are the same sound, so amplitudes, not powers, add up to one.
        ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(self._fade) + 0.5) / max(self._fade, 1))
        self._fade_in = ramp.astype(np.float32)
        self._tail: Samples | None = None
        self._has_spoken = False
        self._silent_samples = 0

    @property
    def silence_after_speech_s(self) -> float:
        return self._silent_samples / SAMPLE_RATE if self._has_spoken else 0.0

    def join(self, window: Window, decoded: Samples) -> Samples:
        """The samples that the window speaks.

        Args:
            window: what was decoded.
            decoded: [(2 * num_steps - 1) * 256], the sound of all its steps.
        """
        end = window.offset + window.num_samples
        spoken = decoded[window.offset : end].copy()
        if self._tail is not None:
            n = min(len(self._tail), len(spoken))
            fade_in = self._fade_in[:n]
            spoken[:n] = spoken[:n] * fade_in + self._tail[:n] * (1 - fade_in)
        self._tail = None if window.is_last else decoded[end : end + self._fade].copy()
        self._listen(spoken)
        return spoken

    def _listen(self, spoken: Samples) -> None:
        num_blocks = len(spoken) // BLOCK
        if num_blocks == 0:
            return
        blocks = spoken[: num_blocks * BLOCK].reshape(num_blocks, BLOCK)
        loud = np.flatnonzero(np.abs(blocks).max(axis=1) > SILENCE_LEVEL)
        if len(loud):
            self._has_spoken = True
            self._silent_samples = len(spoken) - (int(loud[-1]) + 1) * BLOCK
        else:
            self._silent_samples += len(spoken)
