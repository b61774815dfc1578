"""Policy without tensors: microseconds a case."""

import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from chattts_api.engine.scheduler import Limits, Scheduler
from chattts_api.engine.sequence import Phase, Status
from chattts_api.types import Job, SamplingParams, Segment, Style, Voice

VOICE = Voice("v", "V")
PLAIN = Style()


@dataclass
class FakeStream:
    job: Job
    buffered_s: float = 0.0
    current_segment: int = 0
    has_readable: bool = False


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self):
        return self.now


@dataclass
class Bench:
    """A scheduler with jobs named by letters."""

    limits: Limits = field(default_factory=Limits)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self):
        self.scheduler = Scheduler(self.limits, self.clock)
        self.jobs = {}

    def add(self, name, num_segments=1, *, text="你好", style=PLAIN):
        segments = tuple(Segment(text, text, "zh", 50) for _ in range(num_segments))
        self.clock.now += 0.001
        job = Job(name, segments, VOICE, SamplingParams(), style, seed=1)
        self.jobs[name] = self.scheduler.add(FakeStream(job))
        return self.jobs[name]

    def begun(self):
        return [(s.job.stream.job.request_id, s.index) for s in self.scheduler.plan().begin]


def test_rows_begin_then_decode():
    bench = Bench()
    bench.add("a", 2)
    first = bench.scheduler.plan()
    assert [s.index for s in first.begin] == [0, 1]
    assert first.decode == ()
    second = bench.scheduler.plan()
    assert second.begin == ()
    assert set(second.decode) == set(first.begin)


def test_slots_are_distinct_and_come_back():
    bench = Bench(Limits(num_slots=4))
    bench.add("a", 9)
    rows = bench.scheduler.plan().begin
    assert len({s.slot for s in rows}) == len(rows) == 3  # one of four is kept for newcomers
    for row in rows:
        bench.scheduler.end(row, Status.DONE)
    assert len(bench.scheduler.plan().begin) == 3


def test_a_newcomer_takes_the_kept_slot_of_a_full_engine():
    bench = Bench(Limits(num_slots=4))
    bench.add("long", 50)
    bench.scheduler.plan()
    bench.add("short")
    assert bench.begun() == [("short", 0)]


def test_free_slots_go_to_the_job_with_the_fewest_rows():
    bench = Bench(Limits(num_slots=8))
    bench.add("a", 3)
    bench.scheduler.plan()
    bench.add("b", 2)
    bench.add("c", 2)
    assert bench.begun() == [("b", 0), ("c", 0), ("b", 1)]


def test_first_come_first_served_among_equals():
    bench = Bench(Limits(num_slots=1))
    for name in "abc":
        bench.add(name)
    order = []
    for _ in range(3):
        (row,) = bench.scheduler.plan().begin
        order.append(row.job.stream.job.request_id)
        bench.scheduler.end(row, Status.DONE)
    assert order == ["a", "b", "c"]


def test_prefill_is_bounded_a_step():
    bench = Bench(Limits(prefill_tokens=100))
    for name in "abcdef":
        bench.add(name, text="字" * 45)
    assert [len(bench.scheduler.plan().begin) for _ in range(4)] == [2, 2, 2, 0]


def test_a_prompt_over_the_budget_begins_alone():
    bench = Bench(Limits(prefill_tokens=10))
    bench.add("a", text="字" * 300)
    assert len(bench.scheduler.plan().begin) == 1


def test_a_job_far_ahead_of_its_reader_begins_nothing_and_pauses():
    bench = Bench(Limits(num_slots=4, ahead_s=10))
    job = bench.add("a", 9)
    rows = bench.scheduler.plan().begin
    job.stream.buffered_s, job.stream.has_readable = 11, True
    plan = bench.scheduler.plan()
    assert plan.is_idle
    assert {s.status for s in rows} == {Status.PAUSED}
    job.stream.buffered_s = 2
    assert set(bench.scheduler.plan().decode) == set(rows)


def test_the_row_that_the_reader_waits_for_is_never_paused():
    bench = Bench(Limits(num_slots=4, ahead_s=10))
    job = bench.add("a", 3)
    rows = bench.scheduler.plan().begin
    job.stream.buffered_s = 11
    assert bench.scheduler.plan().decode == (rows[0],)


def test_ahead_is_nearer_while_others_are_here():
    bench = Bench(Limits(num_slots=8, near_s=5))
    job = bench.add("a", 9)
    (first, *_) = bench.scheduler.plan().begin
    bench.add("b")
    bench.scheduler.plan()
    bench.scheduler.end(first, Status.DONE)
    job.stream.buffered_s = 6
    assert bench.begun() == []


def test_overdue_jobs():
    bench = Bench(Limits(num_slots=1, queue_timeout_s=30, stall_timeout_s=20, ahead_s=10))
    bench.add("a")
    b = bench.add("b")
    bench.scheduler.plan()
    bench.clock.now += 31
    assert bench.scheduler.overdue().unbegun == (b,)
    a = bench.jobs["a"]
    a.stream.buffered_s, a.stream.has_readable = 11, True
    bench.scheduler.plan()
    bench.clock.now += 19
    assert bench.scheduler.overdue().stalled == ()
    bench.clock.now += 2
    assert bench.scheduler.overdue().stalled == (a,)


def test_removing_a_job_frees_its_slots_at_once():
    bench = Bench(Limits(num_slots=4))
    job = bench.add("a", 9)
    rows = bench.scheduler.plan().begin
    assert set(bench.scheduler.remove(job, Status.ABORTED)) == set(rows)
    assert {s.status for s in job.sequences} == {Status.ABORTED}
    assert bench.scheduler.plan().is_idle
    bench.add("b", 9)
    assert len(bench.scheduler.plan().begin) == 3


def test_a_retry_keeps_its_slot_and_goes_first():
    bench = Bench(Limits(num_slots=1))
    bench.add("a")
    bench.add("b")
    (row,) = bench.scheduler.plan().begin
    slot = row.slot
    bench.scheduler.restart(row)
    assert bench.scheduler.plan().begin == (row,)
    assert row.slot == slot
    assert row.status is Status.RUNNING


def test_refined_jobs_begin_with_the_text_pass():
    bench = Bench()
    bench.add("a", style=Style(oral=2))
    assert bench.scheduler.plan().begin[0].phase is Phase.REFINE


@pytest.mark.parametrize("module", ["scheduler", "sequence"])
def test_policy_imports_no_torch(module):
    code = f"import sys, chattts_api.engine.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
