"""One download of the weights: what is missing, room for it, file after file, progress."""

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from chattts_api import __version__
from chattts_api.errors import WeightsError
from chattts_api.model.fetching import (
    DownloadCancelledError,
    FetchLimits,
    FileFetcher,
    sha256_of,
)
from chattts_api.model.filelock import file_lock
from chattts_api.model.hub_source import HubSource
from chattts_api.model.weights_layout import ASSET_FOLDER, OfficialFile

logger = logging.getLogger(__name__)

REPORT_EVERY_S: Final = 0.2

_SPARE_BYTES = 64 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """How far a download is: bytes on the disk of all bytes, and the file in progress."""

    num_bytes: int
    total_bytes: int
    file: str


class DownloadJob:
    """The work of one download, to be run in a thread of its own; the outcome is in attributes."""

    def __init__(
        self,
        target: Path,
        source: HubSource,
        limits: FetchLimits,
        files: Sequence[OfficialFile],
        on_progress: Callable[[DownloadProgress], None] | None,
    ) -> None:
        self.source = source
        self.stop = threading.Event()
        self.error: WeightsError | None = None
        self.is_done = False
        self._target = target
        self._limits = limits
        self._files = files
        self._on_progress = on_progress
        self._fetcher: FileFetcher | None = None
        self._num_done = 0
        self._reported_at = 0.0

    @property
    def waiting_since(self) -> float | None:
        """Since when (monotonic) the source owes its very first answer, or None."""
        fetcher = self._fetcher
        return None if fetcher is None or fetcher.has_answered else fetcher.asked_at

    def run(self) -> None:
        try:
            folder = self._target / ASSET_FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            with file_lock(self._target / ".lock", is_patient=False):
                self._fetch_missing(folder)
            self.is_done = True
        except WeightsError as error:
            self.error = error
        except BlockingIOError:
            self.error = WeightsError(f"Another download into {self._target} is running.")
        except OSError as error:
            self.error = _storage_error(self._target, error)

    def _fetch_missing(self, folder: Path) -> None:
        missing = [file for file in self._files if not self._is_there(file, folder)]
        self._num_done = sum(f.num_bytes for f in self._files if f not in missing)
        _check_room(folder, missing)
        timeout = httpx.Timeout(self._limits.read_s, connect=self._limits.connect_s)
        headers = {"accept-encoding": "identity", "user-agent": f"chattts-api/{__version__}"}
        with httpx.Client(
            timeout=timeout, headers=headers, follow_redirects=True, max_redirects=5
        ) as client:
            self._fetcher = FileFetcher(client, self.source, self._limits, self._report, self.stop)
            for file in missing:
                path = folder / file.name
                path.parent.mkdir(exist_ok=True)
                self._fetcher.fetch(file, path)
                self._num_done += file.num_bytes
        self._reported_at = 0.0
        self._report(self._files[-1], 0)

    def _is_there(self, file: OfficialFile, folder: Path) -> bool:
        path = folder / file.name
        if self.stop.is_set():
            raise DownloadCancelledError("The download was stopped.")
        if not path.is_file():
            return False
        if path.stat().st_size == file.num_bytes and sha256_of(path) == file.sha256:
            return True
        logger.warning("%s in the download folder is not the published file: again", file.name)
        path.unlink()
        return False

    def _report(self, file: OfficialFile, num_bytes: int) -> None:
        now = time.monotonic()
        if self._on_progress is None or now - self._reported_at < REPORT_EVERY_S:
            return
        if self.stop.is_set():
            return
        self._reported_at = now
        total = sum(f.num_bytes for f in self._files)
        self._on_progress(DownloadProgress(self._num_done + num_bytes, total, file.name))


def _check_room(folder: Path, missing: Iterable[OfficialFile]) -> None:
    fetched = sum(p.stat().st_size for p in folder.rglob("*.part"))
    needed = sum(file.num_bytes for file in missing) - fetched
    free = shutil.disk_usage(folder).free
    if needed > 0 and free < needed + _SPARE_BYTES:
        raise WeightsError(
            f"The weights need {needed / 1e9:.2f} GB, {folder} has {free / 1e9:.2f} GB free: "
            "make room, or set CHATTTS_DATA_DIR to another disk."
        )


def _storage_error(target: Path, error: OSError) -> WeightsError:
    if error.errno in _FULL:
        return WeightsError(f"No room is left for the weights in {target}.")
    return WeightsError(
        f"The weights cannot be kept in {target} ({error.strerror}): make it writable or set "
        "CHATTTS_DATA_DIR."
    )
