"""Samples to the bytes of a response: one encoder, one container, one header per response.

`open_encoder` streams; `encode_whole` makes files whose headers hold exact sizes and durations.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from chattts_api.audio.containers import AAC, FLAC, MP3, OPUS, Container, ContainerWriter
from chattts_api.audio.marking import SYNTHETIC_MARK
from chattts_api.audio.pcm import clipped, to_pcm, to_pcm_bytes
from chattts_api.audio.resample import Resampler
from chattts_api.audio.wav import wav_header, whole_wav
from chattts_api.types import SAMPLE_RATE, AudioFormat, Samples

CONTENT_TYPES: Mapping[AudioFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
OPUS_RATE = 48_000

_CONTAINERS: Mapping[AudioFormat, Container] = {"mp3": MP3, "opus": OPUS, "aac": AAC, "flac": FLAC}


class Encoder(Protocol):
    """`encode` any number of times, then `finish` once; the joined bytes are one valid file."""

    @property
    def content_type(self) -> str: ...

    def encode(self, samples: Samples) -> bytes:
        """What is final so far; may be empty. Raises GenerationFailedError for NaN, infinities."""

    def finish(self) -> bytes: ...


def open_encoder(
    audio_format: AudioFormat,
    *,
    input_rate: int = SAMPLE_RATE,
    sample_rate: int = SAMPLE_RATE,
    metadata: Mapping[str, str] | None = None,
) -> Encoder:
    """An encoder for a response that is sent while it is made.

    Args:
        audio_format: what the file is.
        input_rate: of the samples that `encode` gets.
        sample_rate: of the file, 8,000 to 48,000 Hz; Opus is 48,000 always.
        metadata: what the file says of itself where it can (marking.py); None: the synthetic mark.
    """
    rate = _file_rate(audio_format, sample_rate)
    resampler = Resampler(input_rate, rate)
    if audio_format not in _CONTAINERS:
        return _PcmEncoder(audio_format, resampler, wav_header(rate))
    mark = SYNTHETIC_MARK if metadata is None else metadata
    return _ContainerEncoder(audio_format, resampler, rate, mark)


def encode_whole(
    samples: Samples | Iterable[Samples],
    audio_format: AudioFormat,
    *,
    input_rate: int = SAMPLE_RATE,
    sample_rate: int = SAMPLE_RATE,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """A file of known length: sizes, duration and frame counts in its header are exact."""
    pieces = [samples] if isinstance(samples, np.ndarray) else samples
    rate = _file_rate(audio_format, sample_rate)
    mark = SYNTHETIC_MARK if metadata is None else metadata
    resampler = Resampler(input_rate, rate)
    encoder: Encoder
    if audio_format in _CONTAINERS:
        encoder = _ContainerEncoder(audio_format, resampler, rate, mark, is_whole=True)
    else:
        encoder = _PcmEncoder("pcm", resampler, b"")
    data = b"".join([*(encoder.encode(piece) for piece in pieces), encoder.finish()])
    return whole_wav(data, rate, mark) if audio_format == "wav" else data


def _file_rate(audio_format: AudioFormat, sample_rate: int) -> int:
    return OPUS_RATE if audio_format == "opus" else sample_rate


def _blocks(samples: Samples) -> Iterator[Samples]:
    """Pieces of at most a second: no codec is ever handed a long sound at once."""
    for start in range(0, len(samples), SAMPLE_RATE):
        yield samples[start : start + SAMPLE_RATE]


class _PcmEncoder:
    """PCM, and WAV, which is PCM behind a header."""

    def __init__(self, audio_format: AudioFormat, resampler: Resampler, header: bytes) -> None:
        self.content_type = CONTENT_TYPES[audio_format]
        self._resampler = resampler
        self._header = header if audio_format == "wav" else b""

    def encode(self, samples: Samples) -> bytes:
        return self._with_header(to_pcm_bytes(self._resampler.push(samples)))

    def finish(self) -> bytes:
        return self._with_header(to_pcm_bytes(self._resampler.flush()))

    def _with_header(self, data: bytes) -> bytes:
        header, self._header = self._header, b""
        return header + data


class _ContainerEncoder:
    """Formats of libavcodec."""

    def __init__(
        self,
        audio_format: AudioFormat,
        resampler: Resampler,
        sample_rate: int,
        metadata: Mapping[str, str],
        *,
        is_whole: bool = False,
    ) -> None:
        self.content_type = CONTENT_TYPES[audio_format]
        container = _CONTAINERS[audio_format]
        self._is_integer = container.sample_format == "s16"
        self._resampler = resampler
        self._writer = ContainerWriter(container, sample_rate, metadata, is_whole=is_whole)

    def encode(self, samples: Samples) -> bytes:
        return b"".join(self._write(self._resampler.push(block)) for block in _blocks(samples))

    def finish(self) -> bytes:
        return self._write(self._resampler.flush()) + self._writer.close()

    def _write(self, samples: Samples) -> bytes:
        return self._writer.write(to_pcm(samples) if self._is_integer else clipped(samples))
