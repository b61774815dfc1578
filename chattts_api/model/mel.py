"""Sound to log-mel, as the sample encoder wants it: magnitude, HTK scale, no norm."""

import math

import torch
from torch import Tensor

SAMPLE_RATE = 24_000
NUM_FFT = 1024
HOP = 256
_FLOOR = 1e-5


def mel_filters(num_mels: int) -> Tensor:
    """Triangles evenly spaced on the HTK scale from 0 to 12 kHz, float32 [513, num_mels]."""
    top = _to_mel(SAMPLE_RATE / 2)
    marks = 700.0 * (10.0 ** (torch.linspace(0.0, top, num_mels + 2) / 2595.0) - 1.0)
    frequencies = torch.linspace(0.0, SAMPLE_RATE // 2, NUM_FFT // 2 + 1)
    slopes = marks[None, :] - frequencies[:, None]
    widths = marks.diff()
    rising = -slopes[:, :-2] / widths[:-1]
    falling = slopes[:, 2:] / widths[1:]
    return torch.minimum(rising, falling).clamp_min(0.0)


def log_mel(samples: Tensor, num_mels: int) -> Tensor:
    """samples float32 [N] -> [num_mels, N // 256 + 1]"""
    window = torch.hann_window(NUM_FFT, device=samples.device)
    # Reflection needs more samples than half a window; shorter ones are padded with silence.
    shortest = NUM_FFT // 2 + 1
    if samples.shape[0] < shortest:
        samples = torch.nn.functional.pad(samples, (0, shortest - samples.shape[0]))
    bins = torch.stft(
        samples, NUM_FFT, HOP, NUM_FFT, window, center=True, pad_mode="reflect", return_complex=True
    )
    mel = mel_filters(num_mels).to(samples.device).T @ bins.abs()
    return mel.clamp_min(_FLOOR).log()


def _to_mel(frequency: float) -> float:
    return 2595.0 * math.log10(1.0 + frequency / 700.0)
