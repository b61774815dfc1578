"""One step of the engine: begin rows, advance rows, collect what ended or is due, speak it.

How a row ends is contract.md section 3. A row that fails takes its own job with it, nothing else.
"""

import logging
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np

from chattts_api.engine.faults import run_isolated
from chattts_api.engine.interface import PromptText, RowRunner
from chattts_api.engine.scheduler import Plan, Scheduler
from chattts_api.engine.sequence import JobState, Phase, Sequence, Status
from chattts_api.engine.slots import RowSetup, StepOutcome
from chattts_api.engine.windows import StreamProfile, Window
from chattts_api.errors import GenerationFailedError, SpeechError
from chattts_api.model.randomness import derive_seed
from chattts_api.types import (
    SAMPLE_RATE,
    AudioChunk,
    FinishReason,
    Samples,
    SamplingParams,
)

logger = logging.getLogger(__name__)

MIN_STEPS = 3  # fewer codes than this are no speech
MAX_SILENCE_S = 2.0
RETRIES_EMPTY = 2
RETRIES_OTHER = 1
REFINE_STEPS = 384
REFINE_SAMPLING = SamplingParams(temperature=0.7, top_p=0.7, top_k=20, repetition_penalty=1.0)
REFINE_SEEDS = 1 << 16  # apart from the attempts of the code phase
REFINED_MARGIN = 1.5  # the refine pass adds breaks and fillers


@dataclass(slots=True)
class Counters:
    num_steps: int = 0
    num_rows: int = 0
    num_finished: int = 0
    num_failed: int = 0
    num_retried: int = 0
    num_truncated: int = 0
    num_samples: int = 0


class Stepper:
    """Drives the runner for the scheduler's rows."""

    def __init__(
        self, runner: RowRunner, scheduler: Scheduler, profile: StreamProfile, max_steps: int
    ) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._profile = profile
        self._max_steps = max_steps
        self._rows: dict[int, Sequence] = {}
        self._windows: list[tuple[Sequence, Window]] = []
        self._ended: list[JobState] = []
        self.counters = Counters()

    def step(self, plan: Plan) -> list[JobState]:
        """Do a plan's work; gives the jobs that it ended, well or not."""
        self._ended = []
        self._windows = []
        for row in plan.begin:
            run_isolated([row], self._begin, self._break_row)
        rows = [row for row in (*plan.begin, *plan.decode) if row.status is Status.RUNNING]
        for outcome in run_isolated(rows, self._advance, self._break_row):
            self._collect(outcome)
        self._speak()
        return self._ended

    def drop(self, job: JobState, status: Status) -> None:
        """End a job's rows now."""
        slots = [row.slot for row in job.sequences if row.slot >= 0]
        self._scheduler.remove(job, status)
        for slot in slots:
            self._rows.pop(slot, None)
            self._runner.release(slot)

    # ---- begin and advance

    def _begin(self, rows: SequenceOf[Sequence]) -> None:
        for row in rows:
            self._runner.begin(row.slot, self._prompt(row), self._setup(row))
            self._rows[row.slot] = row
            row.begin_sound(self._profile)
            if row.phase is Phase.CODE:
                assert row.cursor is not None
                self._runner.table.due_at[row.slot] = row.cursor.due_at

    def _prompt(self, row: Sequence) -> PromptText:
        return PromptText(row.segment.text, row.voice, row.style, refined=row.refined)

    def _setup(self, row: Sequence) -> RowSetup:
        seed = row.job.stream.job.seed
        if row.phase is Phase.REFINE:
            return RowSetup(
                sampling=REFINE_SAMPLING,
                seed=derive_seed(seed, row.index, REFINE_SEEDS + row.attempt),
                max_steps=REFINE_STEPS,
                is_text=True,
            )
        margin = 1.0 if row.refined is None else REFINED_MARGIN
        return RowSetup(
            sampling=row.sampling,
            seed=derive_seed(seed, row.index, row.attempt),
            max_steps=min(self._max_steps, round(row.segment.max_steps * margin)),
            min_steps=row.job.stream.job.min_steps,
        )

    def _advance(self, rows: SequenceOf[Sequence]) -> StepOutcome:
        slots = np.fromiter((row.slot for row in rows), np.int64, len(rows))
        outcome = self._runner.step(slots)
        self.counters.num_steps += 1
        self.counters.num_rows += len(rows)
        return outcome

    # ---- collect

    def _collect(self, outcome: StepOutcome) -> None:
        table = self._runner.table
        is_cut, is_due = table.is_cut(outcome.slots), table.is_due(outcome.slots)
        noted = outcome.ended | outcome.broken | is_cut | is_due
        for i in np.flatnonzero(noted):
            row = self._rows.get(int(outcome.slots[i]))
            if row is None:  # its job was ended by another row of this step
                continue
            row.num_steps = int(table.num_steps[row.slot])
            if outcome.broken[i]:
                self._retry_or_fail(row, RETRIES_OTHER)
            elif not (outcome.ended[i] or is_cut[i]):
                self._take_window(row)
            elif row.phase is Phase.REFINE:
                self._take_refined(row)
            else:
                self._end_row(row, "stop" if outcome.ended[i] else "length")

    def _take_window(self, row: Sequence) -> None:
        assert row.cursor is not None
        self._windows.append((row, row.cursor.take()))
        self._runner.table.due_at[row.slot] = row.cursor.due_at

    def _take_refined(self, row: Sequence) -> None:
        # A pass that wrote nothing leaves the text as it was: no word is lost to it.
        row.refined = self._runner.text_ids(row.slot) or None
        row.phase = Phase.CODE
        row.attempt = 0
        self._scheduler.restart(row)

    def _end_row(self, row: Sequence, reason: FinishReason) -> None:
        if row.num_steps < MIN_STEPS:
            self._retry_or_fail(row, RETRIES_EMPTY)
            return
        if reason == "length":
            if not row.has_sound_out and row.attempt < RETRIES_OTHER:
                self._retry(row)
                return
            self.counters.num_truncated += 1
            logger.info("A row reached its budget of %d steps", row.num_steps)
        assert row.cursor is not None
        row.finish_reason = reason
        self._windows += [(row, window) for window in row.cursor.take_rest(row.num_steps)]

    def _retry_or_fail(self, row: Sequence, retries: int) -> None:
        if row.attempt < retries and not row.has_sound_out:
            self._retry(row)
        else:
            self._fail(row, GenerationFailedError("The model made no usable speech of this text."))

    def _retry(self, row: Sequence) -> None:
        row.attempt += 1
        self.counters.num_retried += 1
        self._scheduler.restart(row)

    def _break_row(self, row: Sequence, error: Exception) -> None:
        own = error if isinstance(error, SpeechError) else None
        self._fail(row, own or GenerationFailedError("The speech engine failed on this text."))

    def _fail(self, row: Sequence, error: SpeechError) -> None:
        job = row.job
        if job not in self._scheduler.jobs:
            return
        self.drop(job, Status.FAILED)
        self.counters.num_failed += 1
        job.stream.fail(error)
        self._ended.append(job)

    # ---- speak

    def _speak(self) -> None:
        """Decode the windows of this step, those of one length together, and hand them out."""
        by_length: dict[int, list[int]] = {}
        for i, (_, window) in enumerate(self._windows):
            by_length.setdefault(window.num_steps, []).append(i)
        sounds: dict[int, Samples] = {}
        for indices in by_length.values():
            for decoded in run_isolated(indices, self._vocode, self._break_window):
                sounds.update(decoded)
        for i, (row, window) in enumerate(self._windows):
            if row.status is Status.RUNNING and i in sounds:
                self._hand_out(row, window, sounds[i])

    def _vocode(self, indices: SequenceOf[int]) -> dict[int, Samples]:
        pairs = [(self._windows[i][0].slot, self._windows[i][1]) for i in indices]
        live = [(i, pair) for i, pair in zip(indices, pairs, strict=True) if pair[0] >= 0]
        sounds = self._runner.vocode([pair for _, pair in live]) if live else []
        return {i: sound for (i, _), sound in zip(live, sounds, strict=True)}

    def _break_window(self, index: int, error: Exception) -> None:
        self._break_row(self._windows[index][0], error)

    def _hand_out(self, row: Sequence, window: Window, decoded: Samples) -> None:
        if not np.isfinite(decoded).all():
            self._retry_or_fail(row, RETRIES_OTHER)
            return
        assert row.joiner is not None
        samples = row.joiner.join(window, decoded)
        reason = row.finish_reason if window.is_last else None
        if reason is None and row.joiner.silence_after_speech_s > MAX_SILENCE_S:
            reason = "silence"
        row.num_emitted += len(samples)
        self.counters.num_samples += len(samples)
        row.job.stream.put(AudioChunk(row.index, samples, window.end - window.begin, reason))
        if reason is not None:
            self._close_row(row)

    def _close_row(self, row: Sequence) -> None:
        self._rows.pop(row.slot)
        self._runner.release(row.slot)
        self._scheduler.end(row, Status.DONE)
        self.counters.num_finished += 1
        job = row.job
        if job.is_done:
            self._scheduler.remove(job, Status.DONE)
            job.stream.finish()
            self._ended.append(job)

    def stats(self) -> dict[str, int | float]:
        """The counters under the names of EngineStats."""
        c = self.counters
        return {
            "num_steps": c.num_steps,
            "num_rows": c.num_rows,
            "num_finished": c.num_finished,
            "num_failed": c.num_failed,
            "num_retried": c.num_retried,
            "num_truncated": c.num_truncated,
            "audio_s": c.num_samples / SAMPLE_RATE,
        }
