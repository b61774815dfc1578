"""Who runs next. Pure policy: no tensors, no threads, and a clock that is passed in.

- A job gets its rows in the order of its segments, never more than its fair share while others
  wait: of all jobs with something to begin, the one with the fewest rows open goes first, then
  the one that came first. So a short request beside a long one takes the next free slot.
- A quarter of the slots is kept for jobs that have none, so that a newcomer need not wait for a
  row of a long text to end.
- A job begins no row while it is `ahead_s` seconds ahead of its reader; `near_s` while others wait.
- A row whose reader is that far behind is paused; it keeps its slot, and its job is ended after
  `stall_timeout_s`.
- A step begins new rows of at most `prefill_tokens` estimated prompt ids, so that running rows
  do not stutter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from chattts_api.engine.sequence import JobState, Sequence, Status, open_job
from chattts_api.engine.stream import JobStream

PROMPT_OVERHEAD = 5  # control tokens around a segment's text


@dataclass(frozen=True, slots=True)
class Limits:
    num_slots: int = 16
    prefill_tokens: int = 256
    ahead_s: float = 30.0
    near_s: float = 8.0
    queue_timeout_s: float = 30.0
    stall_timeout_s: float = 30.0

    @property
    def num_reserved(self) -> int:
        return self.num_slots // 4


@dataclass(frozen=True, slots=True)
class Plan:
    """One step's work: rows to begin and the rows that decode (the new ones not among them)."""

    begin: tuple[Sequence, ...]
    decode: tuple[Sequence, ...]

    @property
    def is_idle(self) -> bool:
        return not self.begin and not self.decode


@dataclass(frozen=True, slots=True)
class Overdue:
    """Jobs whose time is up: never begun, or not read for too long."""

    unbegun: tuple[JobState, ...] = ()
    stalled: tuple[JobState, ...] = ()


@dataclass(slots=True)
class Scheduler:
    """Owned by the engine's thread."""

    limits: Limits
    clock: Callable[[], float]
    jobs: list[JobState] = field(default_factory=list)
    running: list[Sequence] = field(default_factory=list)
    paused: list[Sequence] = field(default_factory=list)
    _free_slots: list[int] = field(default_factory=list)
    _retrying: list[Sequence] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._free_slots = list(range(self.limits.num_slots))

    @property
    def num_waiting(self) -> int:
        return sum(len(job.sequences) - job.next_segment for job in self.jobs)

    def add(self, stream: JobStream) -> JobState:
        job = open_job(stream, self.clock())
        self.jobs.append(job)
        return job

    def plan(self) -> Plan:
        """Decide the next step. Rows to begin hold a slot and are RUNNING from here on."""
        self._pause_and_resume()
        decode = tuple(self.running)
        begin = tuple(self._begin())
        self.running.extend(begin)
        return Plan(begin, decode)

    def end(self, sequence: Sequence, status: Status) -> None:
        """A row is over; its slot is free for the next step."""
        self._forget(sequence)
        if sequence.slot >= 0:
            self._free_slots.append(sequence.slot)
            sequence.job.num_open -= 1
        sequence.slot = -1
        sequence.status = status

    def restart(self, sequence: Sequence) -> None:
        """Begin a row again (a retry, or its next phase) in the slot that it has."""
        self._forget(sequence)
        sequence.status = Status.WAITING
        self._retrying.append(sequence)

    def remove(self, job: JobState, status: Status) -> list[Sequence]:
        """End a job and all its rows; gives the rows that held a slot."""
        held = [s for s in job.sequences if s.slot >= 0]
        for sequence in job.sequences:
            if sequence.status is not Status.DONE:
                self.end(sequence, status)
        job.next_segment = len(job.sequences)
        self.jobs.remove(job)
        return held

    def overdue(self) -> Overdue:
        now = self.clock()
        unbegun, stalled = [], []
        for job in self.jobs:
            if not job.has_begun and now - job.arrived_s > self.limits.queue_timeout_s:
                unbegun.append(job)
            since = job.stalled_since_s
            if since is not None and now - since > self.limits.stall_timeout_s:
                stalled.append(job)
        return Overdue(tuple(unbegun), tuple(stalled))

    def _forget(self, sequence: Sequence) -> None:
        for rows in (self.running, self.paused, self._retrying):
            if sequence in rows:
                rows.remove(sequence)

    def _begin(self) -> Iterable[Sequence]:
        budget = self.limits.prefill_tokens
        for sequence in tuple(self._retrying):
            if budget <= 0:
                return
            budget -= prompt_length(sequence)
            self._retrying.remove(sequence)
            sequence.status = Status.RUNNING
            yield sequence
        while budget > 0 and self._free_slots and (job := self._next_job()) is not None:
            sequence = job.sequences[job.next_segment]
            budget -= prompt_length(sequence)
            job.next_segment += 1
            job.num_open += 1
            sequence.slot = self._free_slots.pop()
            sequence.status = Status.RUNNING
            yield sequence

    def _next_job(self) -> JobState | None:
        ready = [job for job in self.jobs if job.has_waiting and self._may_begin(job)]
        return min(ready, key=lambda job: (job.num_open, job.arrived_s), default=None)

    def _may_begin(self, job: JobState) -> bool:
        if job.num_open == 0:
            return True
        ahead_s = self.limits.ahead_s if len(self.jobs) == 1 else self.limits.near_s
        has_room = len(self._free_slots) > self.limits.num_reserved
        return has_room and job.stream.buffered_s < ahead_s

    def _is_ahead(self, job: JobState) -> bool:
        return job.stream.buffered_s >= self.limits.ahead_s

    def _pause_and_resume(self) -> None:
        for job in self.jobs:
            if not self._is_ahead(job):
                job.stalled_since_s = None
            elif job.stalled_since_s is None:
                job.stalled_since_s = self.clock()
        for sequence in [s for s in self.running if self._should_pause(s)]:
            self._move(sequence, self.running, self.paused, Status.PAUSED)
        for sequence in [s for s in self.paused if not self._should_pause(s)]:
            self._move(sequence, self.paused, self.running, Status.RUNNING)

    def _should_pause(self, sequence: Sequence) -> bool:
        # The row that its reader waits for goes on, whatever lies ready behind it.
        job = sequence.job
        is_awaited = sequence.index == job.stream.current_segment and not job.stream.has_readable
        return self._is_ahead(job) and not is_awaited

    @staticmethod
    def _move(
        sequence: Sequence, source: list[Sequence], target: list[Sequence], status: Status
    ) -> None:
        source.remove(sequence)
        target.append(sequence)
        sequence.status = status


def prompt_length(sequence: Sequence) -> int:
    """Estimated ids of a row's prompt, enough for sharing out the step."""
    length = len(sequence.refined) if sequence.refined is not None else len(sequence.segment.text)
    sample = sequence.voice.sample
    return PROMPT_OVERHEAD + length + (sample.codes.shape[1] if sample is not None else 0)
