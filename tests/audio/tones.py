"""Sounds to test with, and the other program that judges the files."""

import shutil
import subprocess

import numpy as np

RATE = 24_000


def speechlike(seconds, *, rate=RATE, seed=0, peak=0.6):
    """Syllables of a voice: harmonics that swell and fade four times a second."""
    t = np.arange(round(seconds * rate)) / rate
    rng = np.random.default_rng(seed)
    f0 = 150 + 20 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(f0) / rate
    voice = sum(rng.uniform(0.3, 1) / k * np.sin(k * phase) for k in range(1, 12))
    sound = voice * (0.25 + 0.75 * np.sin(np.pi * 4 * t) ** 2)
    return (peak * sound / np.abs(sound).max()).astype(np.float32)


def pieces(samples, size):
    return [samples[i : i + size] for i in range(0, len(samples), size)]


def uneven(samples, seed=0, largest=3000):
    """The samples in pieces of random lengths, some of them empty."""
    rng = np.random.default_rng(seed)
    start = 0
    while start < len(samples):
        size = int(rng.integers(0, largest))
        yield samples[start : start + size]
        start += size


def ffmpeg_decode(data, *, rate=RATE, input_options=()):
    """What ffmpeg hears in a file, mono, and what it complains of."""
    ffmpeg = shutil.which("ffmpeg")
    assert ffmpeg, "the tests need ffmpeg: apt-get install ffmpeg"
    command = [
        *(ffmpeg, "-v", "error", *input_options, "-i", "pipe:0"),
        *("-f", "f32le", "-ac", "1", "-ar", str(rate), "pipe:1"),
    ]
    done = subprocess.run(command, input=data, capture_output=True, timeout=30, check=True)
    return np.frombuffer(done.stdout, "<f4"), done.stderr.decode()


def rms(samples):
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0


def similarity(heard, meant, max_delay=3000):
    """The best correlation of two sounds over small delays."""
    size = min(len(heard), len(meant)) - max_delay
    window = meant[:size]
    spectrum = np.fft.rfft(heard[: size + max_delay], 2 * (size + max_delay))
    other = np.fft.rfft(window, 2 * (size + max_delay))
    cross = np.fft.irfft(spectrum * np.conj(other))[:max_delay]
    delay = int(np.argmax(cross))
    part = heard[delay : delay + size]
    return float(part @ window / (np.linalg.norm(part) * np.linalg.norm(window)))
