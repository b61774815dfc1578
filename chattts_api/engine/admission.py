"""The door: how much may be inside an engine. Asked on the event loop before any work."""

import threading

from chattts_api.errors import OverloadedError
from chattts_api.types import STEPS_PER_SECOND, Job

SPEECH_SHARE = 0.5  # of a segment's step budget, which carries a margin of about two


def estimated_s(job: Job) -> float:
    """Seconds of speech that a job is likely to become."""
    return sum(s.max_steps for s in job.segments) * SPEECH_SHARE / STEPS_PER_SECOND


class Admission:
    """Counts the jobs inside and the seconds of speech they stand for.

    What is inside before a job arrives must be under both limits; so one long text is never
    refused by an idle engine, and the bound is the limit plus one job.
    """

    def __init__(self, max_jobs: int, max_queued_s: float) -> None:
        self._max_jobs = max_jobs
        self._max_queued_s = max_queued_s
        self._lock = threading.Lock()
        self._num_jobs = 0
        self._queued_s = 0.0

    @property
    def num_jobs(self) -> int:
        return self._num_jobs

    @property
    def queued_s(self) -> float:
        return self._queued_s

    def enter(self, job: Job, retry_after_s: int) -> None:
        """Raises OverloadedError when full."""
        with self._lock:
            if self._num_jobs >= self._max_jobs or self._queued_s >= self._max_queued_s:
                raise OverloadedError(
                    "The server is full. Try again shortly.", retry_after_s=retry_after_s
                )
            self._num_jobs += 1
            self._queued_s += estimated_s(job)

    def leave(self, job: Job) -> None:
        with self._lock:
            self._num_jobs -= 1
            self._queued_s = self._queued_s - estimated_s(job) if self._num_jobs else 0.0
