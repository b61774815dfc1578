"""The helper process of decoding.py: a file on standard input, samples on standard output."""

import io
import sys
from typing import Final

import numpy as np
import soundfile  # type: ignore[import-untyped]

from chattts_api.audio.resample import resample
from chattts_api.types import SAMPLE_RATE

TOO_LONG: Final = 3
BROKEN: Final = 4
_MAX_CHANNELS: Final = 8
_MEMORY_BYTES: Final = 2 << 30
_CPU_S: Final = 10


def main() -> int:
    _bound()
    max_s = float(sys.argv[1])
    data = sys.stdin.buffer.read()
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if not (1 <= file.channels <= _MAX_CHANNELS and 4_000 <= file.samplerate <= 192_000):
                return BROKEN
            blocks = []
            left = int(max_s * file.samplerate)
            # Counted as it is read: a header's length may lie either way.
            while len(block := file.read(file.samplerate, dtype="float32", always_2d=True)):
                left -= len(block)
                if left < 0:
                    return TOO_LONG
                blocks.append(block.mean(axis=1, dtype=np.float32))
            rate = file.samplerate
    except soundfile.LibsndfileError:
        return BROKEN
    mono = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    if not np.isfinite(mono).all():
        return BROKEN
    samples = np.clip(resample(mono, rate, SAMPLE_RATE), -1.0, 1.0)
    sys.stdout.buffer.write(samples.astype("<f4").tobytes())
    return 0


def _bound() -> None:
    """Limits of the process, where the system has them."""
    try:
        import resource
    except ImportError:  # Windows: the caller's timeout alone
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))


if __name__ == "__main__":
    sys.exit(main())
