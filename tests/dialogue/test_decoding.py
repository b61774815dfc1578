"""Uploaded audio: read in a helper process, bombs refused."""

import io
import wave

import numpy as np
import pytest
import soundfile

from chattts_api.audio.decoding import DecodeLimits, decode_audio
from chattts_api.errors import ContentTooLargeError, InvalidAudioError
from chattts_api.types import SAMPLE_RATE, Samples
from tests.fakes import tone

LIMITS = DecodeLimits(min_s=0.5, max_s=5)


def audio(samples: Samples, rate: int = SAMPLE_RATE, kind: str = "WAV") -> bytes:
    out = io.BytesIO()
    soundfile.write(out, samples, rate, format=kind)
    return out.getvalue()


@pytest.mark.parametrize(("kind", "rate"), [("WAV", 44100), ("FLAC", 8000), ("MP3", 24000)])
async def test_formats_and_rates_come_out_as_mono_24_khz(kind: str, rate: int) -> None:
    t = np.arange(rate) / rate
    stereo = np.stack([0.4 * np.sin(2 * np.pi * 440 * t)] * 2, axis=1).astype(np.float32)
    samples = await decode_audio(audio(stereo, rate, kind), LIMITS)
    assert abs(len(samples) - SAMPLE_RATE) < 0.1 * SAMPLE_RATE
    spectrum = np.abs(np.fft.rfft(samples))
    assert abs(int(spectrum.argmax()) * SAMPLE_RATE / len(samples) - 440) < 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"RIFF\0\0\0\0WAVE",
        audio(tone(1))[:100],
        audio(tone(0.1)),
        audio(np.zeros(3600 * 8000, np.float32), 8000, "FLAC"),
        audio(np.full(SAMPLE_RATE, np.nan, np.float32), kind="WAV")[:0] or b"fLaC" + b"\0" * 50,
        b"#EXTM3U\nfile:///etc/passwd",
    ],
    ids=["empty", "text", "header", "cut", "short", "bomb", "garbage", "playlist"],
)
async def test_what_is_no_fitting_sound_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidAudioError):
        await decode_audio(data, LIMITS)


async def test_a_file_that_is_too_large_is_not_even_looked_at() -> None:
    with pytest.raises(ContentTooLargeError):
        await decode_audio(b"RIFF" + b"\0" * (10 << 20), LIMITS)


async def test_many_channels_are_refused() -> None:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(64)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0" * 64 * 2 * 8000)
    with pytest.raises(InvalidAudioError):
        await decode_audio(out.getvalue(), LIMITS)
