"""The weights on this machine: find them, check them, download them. No torch.

Every file counts as official by its sha256 alone, whatever server or folder it came from.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from chattts_api.errors import WeightsError
from chattts_api.model.download_job import DownloadJob, DownloadProgress
from chattts_api.model.fetching import DownloadCancelledError, FetchLimits, sha256_of
from chattts_api.model.hub_source import MODELSCOPE_REPOSITORY, HubSource
from chattts_api.model.weights_layout import (
    ASSET_FOLDER,
    HUB_REPOSITORY,
    HUB_REVISION,
    OFFICIAL_FILES,
    OfficialFile,
    find_asset_folder,
)

logger = logging.getLogger(__name__)

HOW_TO_GET_WEIGHTS: Final = (
    "To get the weights: `python -m chattts_api weights download` (through a mirror: "
    "HF_ENDPOINT=https://hf-mirror.com or HF_ENDPOINT=modelscope), or copy the asset folder of "
    f"{HUB_REPOSITORY} from another machine and set CHATTTS_MODEL_DIR to it."
)

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file of a model folder; `expected` is the published file's hash."""

    name: str
    num_bytes: int
    sha256: str
    expected: str

    @property
    def is_official(self) -> bool:
        return self.sha256 == self.expected


def download_folder(data_dir: Path) -> Path:
    """The model folder of a data folder, into which weights are downloaded."""
    return data_dir / "weights" / f"ChatTTS-{HUB_REVISION[:12]}"


def find_weights(model_dir: Path | None, data_dir: Path, caches: Iterable[Path]) -> Path | None:
    """The asset folder of the weights to use, or None where there are none yet.

    Args:
        model_dir: the user's own folder, taken as it is; nothing else is looked at then.
        data_dir: holds an earlier download.
        caches: hub caches of Hugging Face (`~/.cache/huggingface/hub`) and ModelScope
            (`~/.cache/modelscope/hub`).

    Raises:
        WeightsError: the user's own folder is missing or incomplete.
    """
    if model_dir is not None:
        return find_asset_folder(model_dir)
    candidates = [download_folder(data_dir) / ASSET_FOLDER]
    for cache in caches:
        candidates += _cached_folders(cache)
    return next((folder for folder in candidates if _has_official_sizes(folder)), None)


def verify_weights(
    model_dir: Path,
    mode: Literal["warn", "strict"] = "warn",
    files: Sequence[OfficialFile] = OFFICIAL_FILES,
) -> tuple[FileReport, ...]:
    """Hash every file of a model folder; each unknown hash is logged loudly.

    Raises:
        WeightsError: a file is missing; in strict mode also an unknown hash.
    """
    folder = find_asset_folder(model_dir)
    reports = []
    for file in files:
        path = folder / file.name
        reports.append(FileReport(file.name, path.stat().st_size, sha256_of(path), file.sha256))
    unknown = [r for r in reports if not r.is_official]
    words = [f"{r.name} has sha256 {r.sha256}, the published file {r.expected}" for r in unknown]
    if words and mode == "strict":
        raise WeightsError(
            f"CHATTTS_VERIFY=strict refuses {folder}: {'; '.join(words)}. Set CHATTTS_VERIFY=warn "
            "to use these files."
        )
    for line in words:
        logger.warning("UNKNOWN WEIGHTS: %s", line)
    return tuple(reports)


def download_weights(
    target: Path,
    source: HubSource,
    on_progress: Callable[[DownloadProgress], None] | None = None,
    cancel: threading.Event | None = None,
    limits: FetchLimits | None = None,
    files: Sequence[OfficialFile] = OFFICIAL_FILES,
) -> Path:
    """Fetch what a model folder lacks and return its asset folder. Blocks: call it in a thread.

    Args:
        on_progress: called from another thread, at most a few times a second.
        cancel: set it to stop; what was fetched is kept, and the next call goes on from it.

    Raises:
        WeightsError: no network, no room, another download running, a source without the files.
        DownloadCancelledError: `cancel` was set.
    """
    limits = limits or FetchLimits()
    cancel = cancel or threading.Event()
    download = DownloadJob(target, source, limits, files, on_progress)
    # A name service may take a minute to say that there is no network, and cannot be told to
    # hurry: the work has its own thread, which is left behind when its time is up.
    worker = threading.Thread(target=download.run, name="weights-download", daemon=True)
    worker.start()
    try:
        _watch(worker, download, cancel, limits)
    finally:
        download.stop.set()
    if download.error is not None:
        raise download.error
    if not download.is_done:
        raise WeightsError("The download of the weights broke off: the log says why.")
    return target / ASSET_FOLDER


def _watch(
    worker: threading.Thread, download: DownloadJob, cancel: threading.Event, limits: FetchLimits
) -> None:
    while worker.is_alive():
        worker.join(_POLL_S)
        if cancel.is_set() and worker.is_alive():
            raise DownloadCancelledError("The download was stopped.")
        since = download.waiting_since
        if since is not None and time.monotonic() - since > limits.first_answer_s:
            raise WeightsError(
                f"{download.source.endpoint} gave no answer in {limits.first_answer_s:g} s."
            )


def _cached_folders(cache: Path) -> list[Path]:
    """Where the hub's own tools keep the files: the pinned revision first, then others."""
    snapshots = cache / f"models--{HUB_REPOSITORY.replace('/', '--')}" / "snapshots"
    others = sorted(p for p in snapshots.glob("*") if p.name != HUB_REVISION)
    folders = [snapshots / HUB_REVISION, *others]
    folders += [cache / MODELSCOPE_REPOSITORY, cache / "models" / MODELSCOPE_REPOSITORY]
    return [folder / ASSET_FOLDER for folder in folders]


def _has_official_sizes(folder: Path) -> bool:
    paths = [(folder / file.name, file.num_bytes) for file in OFFICIAL_FILES]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)
