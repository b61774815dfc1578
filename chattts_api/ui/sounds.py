"""The sounds that the page has made: 16-bit PCM files that can be followed while they grow.

A sound is found by an unguessable id and only by its owner. The oldest go when the shelf is full.
"""

import asyncio
import secrets
import tempfile
from collections import OrderedDict
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from chattts_api.errors import NotFoundError
from chattts_api.types import SAMPLE_RATE, Samples

MAX_SHELF_BYTES: Final = 1 << 30
_READ_BYTES: Final = 1 << 16


class Sound:
    """One sound, 24 kHz mono. Written by one event, followed by any number of readers."""

    def __init__(self, path: Path, owner: str | None) -> None:
        self.id = path.stem
        self.owner = owner
        self.is_done = False
        self.num_bytes = 0
        self._path = path
        self._file: BinaryIO | None = path.open("wb", buffering=0)
        self._changed = asyncio.Event()

    @property
    def seconds(self) -> float:
        return self.num_bytes / 2 / SAMPLE_RATE

    def write(self, samples: Samples) -> None:
        assert self._file is not None
        clipped = np.clip(samples, -1.0, 1.0)
        data = np.rint(clipped * 32767.0).astype("<i2").tobytes()
        self._file.write(data)
        self.num_bytes += len(data)
        self._tell()

    def close(self) -> None:
        """The sound is whole, or nothing more will come."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.is_done = True
        self._tell()

    def discard(self) -> None:
        self.close()
        self._path.unlink(missing_ok=True)

    async def follow(self) -> AsyncGenerator[bytes]:
        """The PCM from the beginning, as it comes, to the end."""
        with self._path.open("rb") as file:  # a discarded file stays readable while it is open
            while True:
                changed = self._changed
                if data := file.read(_READ_BYTES):
                    yield data
                elif self.is_done:
                    return
                else:
                    await changed.wait()

    def samples(self) -> Samples:
        pcm = np.fromfile(self._path, dtype="<i2")
        return (pcm.astype(np.float32) / 32767.0).astype(np.float32)

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class SoundShelf:
    """Keeps sounds in a private folder that goes with the process."""

    def __init__(self, *, max_bytes: int = MAX_SHELF_BYTES) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="chattts-sounds-")
        self._max_bytes = max_bytes
        self._sounds: OrderedDict[str, Sound] = OrderedDict()

    def open(self, owner: str | None) -> Sound:
        """A new sound; the oldest finished ones make room."""
        self._make_room()
        path = Path(self._folder.name) / f"{secrets.token_urlsafe(16)}.pcm"
        sound = Sound(path, owner)
        self._sounds[sound.id] = sound
        return sound

    def find(self, sound_id: str, owner: str | None) -> Sound:
        """Raises NotFoundError, also for somebody else's."""
        sound = self._sounds.get(sound_id)
        if sound is None or sound.owner != owner:
            raise NotFoundError("No such sound; it may have been cleared away.")
        return sound

    def discard(self, sound_id: str) -> None:
        if (sound := self._sounds.pop(sound_id, None)) is not None:
            sound.discard()

    def close(self) -> None:
        """Drop every sound and the folder."""
        for sound_id in list(self._sounds):
            self.discard(sound_id)
        self._folder.cleanup()

    def _make_room(self) -> None:
        total = sum(sound.num_bytes for sound in self._sounds.values())
        for sound_id in [i for i, s in self._sounds.items() if s.is_done]:
            if total <= self._max_bytes:
                return
            total -= self._sounds[sound_id].num_bytes
            self.discard(sound_id)
