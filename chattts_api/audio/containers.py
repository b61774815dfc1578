"""The formats that libavcodec writes: one codec and one container each."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, cast

import av
import numpy as np
import numpy.typing as npt
from av.audio.stream import AudioStream
from av.container import OutputContainer

from chattts_api.audio.pcm import Pcm
from chattts_api.types import Samples


@dataclass(frozen=True, slots=True)
class Container:
    """How a format is written. `streamed` and `whole` are muxer options.

    The bit rates are transparent for speech; the codecs allow no more at low sample rates.
    """

    codec: str
    muxer: str
    sample_format: Literal["fltp", "flt", "s16"]
    codec_options: Mapping[str, str] = field(default_factory=dict)
    max_bit_rate: int = 96_000
    streamed: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)

    def bit_rate(self, sample_rate: int) -> int:
        wanted = 64_000 if sample_rate <= 24_000 else 96_000
        return min(wanted, self.max_bit_rate, sample_rate * 4)


_OPUS_PAGES = {"page_duration": "20000"}  # microseconds; the default, 1 s, delays the first sound

MP3 = Container(
    "libmp3lame",
    "mp3",
    "fltp",
    streamed={"write_xing": "0", "id3v2_version": "0"},
    whole={"write_xing": "1", "id3v2_version": "4"},
)
OPUS = Container(
    "libopus", "ogg", "flt", {"vbr": "constrained"}, max_bit_rate=48_000, streamed=_OPUS_PAGES
)
AAC = Container("aac", "adts", "fltp")
FLAC = Container("flac", "flac", "s16")


class _Sink:
    """Takes what a muxer writes; without `seek`, so that nothing written is ever changed."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


class ContainerWriter:
    """Writes one file; `write` gives the bytes that are final so far.

    A whole file comes in one piece from `close`, with its header filled in afterwards.
    """

    def __init__(
        self,
        container: Container,
        sample_rate: int,
        metadata: Mapping[str, str],
        *,
        is_whole: bool = False,
    ) -> None:
        self._rate = sample_rate
        self._sample_format = container.sample_format
        self._num_written = 0
        self._file: io.BytesIO | _Sink = io.BytesIO() if is_whole else _Sink()
        options = container.whole if is_whole else container.streamed
        self._muxer: OutputContainer = av.open(
            self._file,
            "w",
            format=container.muxer,
            # bitexact: the same sound gives the same bytes
            options={"flush_packets": "1", "fflags": "+bitexact", **options},
        )
        self._muxer.metadata.update(metadata)
        self._stream = cast(
            AudioStream,
            self._muxer.add_stream(
                container.codec,
                rate=sample_rate,
                options={"threads": "1", "flags": "+bitexact", **container.codec_options},
            ),
        )
        self._stream.layout = "mono"
        self._stream.format = container.sample_format
        self._stream.bit_rate = container.bit_rate(sample_rate)
        self._stream.time_base = Fraction(1, sample_rate)
        self._muxer.start_encoding()

    def write(self, samples: Samples | Pcm) -> bytes:
        if len(samples):
            row = cast(npt.NDArray[np.int16], np.ascontiguousarray(samples)[None])
            frame = av.AudioFrame.from_ndarray(row, format=self._sample_format, layout="mono")
            frame.sample_rate = self._rate
            frame.time_base = Fraction(1, self._rate)
            frame.pts = self._num_written
            self._num_written += len(samples)
            self._muxer.mux(self._stream.encode(frame))
        return self._take()

    def close(self) -> bytes:
        """The codec's delayed frames and the container's end."""
        self._muxer.mux(self._stream.encode(None))
        self._muxer.close()
        return self._file.getvalue() if isinstance(self._file, io.BytesIO) else self._take()

    def _take(self) -> bytes:
        return self._file.take() if isinstance(self._file, _Sink) else b""
