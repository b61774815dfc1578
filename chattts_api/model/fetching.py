"""Fetches one file of known size and hash over HTTP, resuming what an earlier try has left.

A file has its own name only when its hash is right and its bytes are on the disk; until then it is
`NAME.part`. Knows nothing of threads, but stops at the next chunk when its event is set.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Final

import httpx

from chattts_api.errors import WeightsError
from chattts_api.model.durable import replace_durably
from chattts_api.model.hub_source import HubSource
from chattts_api.model.part_file import PartFile, WrongFileError
from chattts_api.model.weights_layout import OfficialFile

logger = logging.getLogger(__name__)

PART_SUFFIX: Final = ".part"

_MAX_RETRY_AFTER_S = 30.0
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)", re.ASCII)
_BUSY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}


class DownloadCancelledError(WeightsError):
    """The caller asked to stop; what was fetched is kept for the next time."""


class _RetryError(Exception):
    """This try has failed, the next may not."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How long to wait for a server, and how often to try again.

    Attributes:
        connect_s: for a connection.
        read_s: for the next bytes.
        first_answer_s: for the very first answer, the name service included.
        num_attempts: tries in a row that bring no new bytes.
        backoff_s: before the second try; doubled before each further one.
    """

    connect_s: float = 4.0
    read_s: float = 15.0
    first_answer_s: float = 8.0
    num_attempts: int = 5
    backoff_s: float = 0.5


class FileFetcher:
    """Fetches files of one source.

    Args:
        on_bytes: called with a file and how many of its bytes are there, often.
        stop: set from another thread to stop at the next chunk.
    """

    def __init__(
        self,
        client: httpx.Client,
        source: HubSource,
        limits: FetchLimits,
        on_bytes: Callable[[OfficialFile, int], None],
        stop: Event,
    ) -> None:
        self._client = client
        self._source = source
        self._limits = limits
        self._on_bytes = on_bytes
        self._stop = stop
        self.has_answered = False
        self.asked_at: float | None = None

    def fetch(self, file: OfficialFile, path: Path) -> None:
        """Put the file at `path`.

        Raises:
            WeightsError: the source cannot be reached, refuses, or has another file.
            DownloadCancelledError: `stop` was set.
        """
        part_path = path.with_name(path.name + PART_SUFFIX)
        for is_last in (False, True):
            try:
                self._fill(file, part_path)
            except WrongFileError as error:
                part_path.unlink(missing_ok=True)
                if is_last:
                    raise WeightsError(
                        f"{file.name} from {self._source.endpoint} is not the published file, "
                        f"twice: {error}. Try another HF_ENDPOINT."
                    ) from error
                logger.warning("%s was fetched wrongly (%s): once more", file.name, error)
            else:
                replace_durably(part_path, path)
                return

    def _fill(self, file: OfficialFile, part_path: Path) -> None:
        """Bring the part to its full size and check its hash."""
        num_failures = 0
        with PartFile(part_path, file) as part:
            best = part.num_bytes
            while not part.is_full:
                try:
                    self._attempt(file, part)
                except (httpx.RequestError, _RetryError) as error:
                    num_failures = 1 if part.num_bytes > best else num_failures + 1
                    best = max(best, part.num_bytes)
                    self._wait_or_give_up(file, error, num_failures)
            part.finish()

    def _wait_or_give_up(
        self, file: OfficialFile, error: httpx.RequestError | _RetryError, num_failures: int
    ) -> None:
        reason = str(error) or type(error).__name__
        if not self.has_answered:
            raise WeightsError(f"{self._source.endpoint} cannot be reached ({reason}).") from error
        if num_failures >= self._limits.num_attempts:
            raise WeightsError(
                f"{file.name} could not be fetched from {self._source.endpoint} ({reason}); "
                "what is there is kept, and the next try goes on from it."
            ) from error
        wait_s = self._limits.backoff_s * 2 ** (num_failures - 1)
        if isinstance(error, _RetryError) and error.wait_s is not None:
            wait_s = max(wait_s, error.wait_s)
        logger.info("%s: %s; again in %.1f s", file.name, reason, wait_s)
        if self._stop.wait(wait_s):
            raise DownloadCancelledError("The download was stopped.")

    def _attempt(self, file: OfficialFile, part: PartFile) -> None:
        headers = {"Range": f"bytes={part.num_bytes}-"} if part.num_bytes else {}
        self.asked_at = self.asked_at or time.monotonic()
        with self._client.stream("GET", self._source.url(file), headers=headers) as response:
            self.has_answered = True
            self._check_status(file, response, part)
            _check_size(response, file, part)
            for chunk in response.iter_raw():
                if self._stop.is_set():
                    raise DownloadCancelledError("The download was stopped.")
                part.append(chunk)
                self._on_bytes(file, part.num_bytes)
        if not part.is_full:
            raise _RetryError("the connection ended early")

    def _check_status(self, file: OfficialFile, response: httpx.Response, part: PartFile) -> None:
        status = response.status_code
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and part.num_bytes:
            part.restart()
            raise _RetryError("the server would not resume")
        if status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _RetryError(f"the server answered {status}", _retry_after(response))
        if status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}:
            raise WeightsError(
                f"{self._source.endpoint} answered {status} for {file.name}. "
                "Try another HF_ENDPOINT."
            )


def _check_size(response: httpx.Response, file: OfficialFile, part: PartFile) -> None:
    """Start over where the server does not resume; refuse a file of another size unread."""
    begin, total = 0, response.headers.get("content-length")
    if response.status_code == HTTPStatus.PARTIAL_CONTENT:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
        if match is None:
            part.restart()
            raise _RetryError("the server's range cannot be understood")
        begin, total = int(match[1]), match[2]
    if begin != part.num_bytes:
        part.restart()
    if begin > 0 and not part.num_bytes:
        raise _RetryError("the server sent another range")
    if total and total.isdecimal() and int(total) != file.num_bytes:
        raise WrongFileError(f"it has {total} bytes, not {file.num_bytes}")


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return min(float(text), _MAX_RETRY_AFTER_S) if text.isdecimal() else None


def sha256_of(path: Path) -> str:
    """The hash of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
