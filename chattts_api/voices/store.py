"""Saved voices: one folder, one file a voice, named by a random id.

A voice is acknowledged when its file and its place in the folder are on the disk. Reading never
needs repair: half-written files have other names, corrupt ones are set aside. Several processes
may share the folder. Every method may be called from any thread, and may wait for the disk.
"""

import errno
import logging
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from chattts_api.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    ServerError,
    SetupError,
    StorageFullError,
)
from chattts_api.model.durable import fsync_folder, replace_durably
from chattts_api.model.filelock import file_lock
from chattts_api.types import Voice
from chattts_api.voices.builtin import builtin_names
from chattts_api.voices.names import fold_name
from chattts_api.voices.record import (
    ID_PATTERN,
    MAX_RECORD_BYTES,
    CorruptRecordError,
    StoredVoice,
    UnknownFormatError,
    clean_voice,
    from_bytes,
    to_bytes,
)

logger = logging.getLogger(__name__)

MAX_VOICES_PER_OWNER: Final = 200

_SUFFIX = ".json"
_TEMPORARY = ".tmp"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A folder's time moves in ticks: a change within this long of the last look may not show.
_MTIME_TICK_NS = 100_000_000


class VoiceStore:
    """The saved voices of a folder.

    A voice belongs to its owner, an opaque string; those of owner None are everybody's to use.

    Raises:
        SetupError: the folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.Lock()
        self._voices: dict[str, StoredVoice] = {}
        self._refused: set[str] = set()
        self._seen_mtime_ns: int | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with file_lock(self._lock_path):
                for path in folder.glob(f"*{_TEMPORARY}"):
                    path.unlink(missing_ok=True)
            self._refresh()
        except OSError as error:
            raise SetupError(
                f"Voices cannot be kept in {folder} ({error.strerror}): make the folder writable "
                "or set CHATTTS_DATA_DIR to one that is."
            ) from error

    def save(self, voice: Voice, owner: str | None = None) -> Voice:
        """Keep a voice under a new id; its own id is ignored. On return it is on the disk.

        Raises:
            InvalidRequestError, InvalidSpeakerError: a field out of bounds, too many voices.
            ConflictError: this owner has a voice of that name, or it is a built-in one's.
            StorageFullError: no room on the disk.
        """
        voice = replace(clean_voice(voice), id=f"v_{secrets.token_urlsafe(16)}")
        stored = StoredVoice(voice, owner, int(time.time()))
        with self._writing():
            self._check_room(voice.name, owner)
            self._write(voice.id, to_bytes(stored))
            self._voices[voice.id] = stored
        return voice

    def find(self, text: str, owner: str | None = None) -> Voice | None:
        """The voice of that id, else of that name (the owner's before everybody's), if any."""
        with self._reading():
            stored = self._voices.get(text)
        if stored is not None and _is_visible(stored, owner):
            return stored.voice
        folded = fold_name(text)
        named = [r for r in self.records(owner) if fold_name(r.voice.name) == folded]
        named.sort(key=lambda r: r.owner is None)
        return named[0].voice if named else None

    def get(self, voice_id: str, owner: str | None = None) -> StoredVoice:
        """The voice of that id.

        Raises:
            NotFoundError: none that this owner may use.
        """
        with self._reading():
            stored = self._voices.get(voice_id)
        if stored is None or not _is_visible(stored, owner):
            raise NotFoundError("No saved voice has this id.", param="id")
        return stored

    def records(self, owner: str | None = None) -> list[StoredVoice]:
        """What this owner may use, the oldest first."""
        with self._reading():
            visible = [r for r in self._voices.values() if _is_visible(r, owner)]
        return sorted(visible, key=lambda r: (r.created, r.voice.id))

    def list(self, owner: str | None = None) -> "list[Voice]":
        """The voices of `records`."""
        return [r.voice for r in self.records(owner)]

    def delete(self, voice_id: str, owner: str | None = None) -> None:
        """Forget a voice of this owner.

        Raises:
            NotFoundError: none that this owner may see.
            ForbiddenError: everybody's, asked for by one owner.
        """
        if self.get(voice_id, owner).owner != owner:
            raise ForbiddenError("A shared voice is deleted by who runs the server.", param="id")
        with self._writing():
            self._path(voice_id).unlink(missing_ok=True)
            fsync_folder(self._folder)
            self._voices.pop(voice_id, None)

    @property
    def _lock_path(self) -> Path:
        return self._folder / ".lock"

    def _path(self, voice_id: str) -> Path:
        assert ID_PATTERN.fullmatch(voice_id)
        return self._folder / f"{voice_id}{_SUFFIX}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._mutex:
            try:
                self._refresh()
            except OSError as error:
                logger.warning("Saved voices cannot be listed: %s", error)
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer of all threads and processes, with the folder's present state loaded."""
        try:
            with self._mutex, file_lock(self._lock_path):
                self._refresh()
                yield
        except OSError as error:
            logger.exception("A voice could not be saved or deleted")
            if error.errno in _FULL:
                raise StorageFullError("No room is left to save voices.") from error
            raise ServerError("Voices cannot be saved at the moment.") from error

    def _check_room(self, name: str, owner: str | None) -> None:
        own = [r for r in self._voices.values() if r.owner == owner]
        folded = fold_name(name)
        if folded in builtin_names() or any(fold_name(r.voice.name) == folded for r in own):
            raise ConflictError("There is a voice of this name already.", param="name")
        if len(own) >= MAX_VOICES_PER_OWNER:
            raise InvalidRequestError(
                f"At most {MAX_VOICES_PER_OWNER} voices can be saved: delete one first."
            )

    def _write(self, voice_id: str, data: bytes) -> None:
        temporary = self._folder / f"{voice_id}{_TEMPORARY}"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            replace_durably(temporary, self._path(voice_id))
        finally:
            temporary.unlink(missing_ok=True)

    def _refresh(self) -> None:
        """Load what other processes have saved, drop what they have deleted."""
        mtime_ns = self._folder.stat().st_mtime_ns
        if mtime_ns == self._seen_mtime_ns:
            return
        present = {p.name.removesuffix(_SUFFIX) for p in self._folder.glob(f"*{_SUFFIX}")}
        for gone in self._voices.keys() - present:
            del self._voices[gone]
        is_complete = True
        for voice_id in sorted(present - self._voices.keys() - self._refused):
            is_complete &= self._load(voice_id)
        is_settled = time.time_ns() - mtime_ns > _MTIME_TICK_NS
        self._seen_mtime_ns = mtime_ns if is_complete and is_settled else None

    def _load(self, voice_id: str) -> bool:
        """Load one file or set it aside; False when it could not be read this time."""
        path = self._folder / f"{voice_id}{_SUFFIX}"
        try:
            self._voices[voice_id] = _read_record(path)
        except UnknownFormatError as error:
            logger.warning("Voice file %s is left alone: %s", path.name, error)
            self._refused.add(voice_id)
        except CorruptRecordError as error:
            self._quarantine(path, error)
        except FileNotFoundError:
            return True
        except OSError as error:
            logger.warning("Voice file %s cannot be read: %s", path.name, error)
            return False
        return True

    def _quarantine(self, path: Path, reason: CorruptRecordError) -> None:
        aside = self._folder / "quarantine" / f"{time.time_ns()}-{path.name}"
        try:
            aside.parent.mkdir(exist_ok=True)
            path.rename(aside)
        except OSError as error:
            self._refused.add(path.name.removesuffix(_SUFFIX))
            logger.warning("Voice file %s is corrupt (%s): %s", path.name, reason, error)
            return
        logger.warning("Voice file %s is corrupt (%s): moved to %s", path.name, reason, aside)


def _is_visible(stored: StoredVoice, owner: str | None) -> bool:
    return stored.owner is None or stored.owner == owner


def _read_record(path: Path) -> StoredVoice:
    stored = from_bytes(_read(path))
    if stored.voice.id + _SUFFIX != path.name:
        raise CorruptRecordError("its name is not its id")
    return stored


def _read(path: Path) -> bytes:
    """The bytes of a regular file of sane size; never follows a link or waits for a pipe."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise CorruptRecordError("not a regular file")
    with path.open("rb") as file:
        data = file.read(MAX_RECORD_BYTES + 1)
    if len(data) > MAX_RECORD_BYTES:
        raise CorruptRecordError("too large")
    return data
