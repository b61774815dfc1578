"""The model's engine: one thread owns the device, and every request shares its steps.

The loop is `receive -> plan -> step`: new jobs and aborts come in, the scheduler says which rows
begin and which decode, and the step does it. The event loop only ever queues and reads.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from chattts_api.engine.admission import Admission
from chattts_api.engine.faults import is_fatal
from chattts_api.engine.interface import RowRunner
from chattts_api.engine.scheduler import Limits, Scheduler
from chattts_api.engine.sequence import JobState, Status
from chattts_api.engine.stepper import Stepper
from chattts_api.engine.stream import JobStream
from chattts_api.engine.windows import StreamProfile
from chattts_api.errors import (
    EngineFailedError,
    ModelLoadingError,
    OverloadedError,
    RequestTimeoutError,
    SpeechError,
)
from chattts_api.types import EngineStats, Job

logger = logging.getLogger(__name__)

IDLE_WAIT_S = 0.5
MAX_RESTARTS = 3
RESTART_PERIOD_S = 600.0


@dataclass(frozen=True, slots=True)
class EngineConfig:
    limits: Limits
    profile: StreamProfile
    max_jobs: int = 64
    max_queued_s: float = 600.0
    max_steps: int = 2048


class ModelEngine:
    """SpeechEngine over a RowRunner.

    Args:
        load: makes the runner; called on the engine's thread. May raise SetupError.
        config: limits and the stream profile.
        on_dead: called once, from the engine's thread, when the engine has failed for good.
    """

    name = "chattts"

    def __init__(
        self,
        load: Callable[[], RowRunner],
        config: EngineConfig,
        on_dead: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._load = load
        self._config = config
        self._on_dead = on_dead
        self._admission = Admission(config.max_jobs, config.max_queued_s)
        self._scheduler = Scheduler(config.limits, time.monotonic)
        self._inbox: deque[JobStream] = deque()
        self._outbox: deque[JobStream] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._is_ready = False
        self._is_dead = False
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
        self._runner: RowRunner | None = None
        self._stepper: Stepper | None = None
        self._beat_s = time.monotonic()
        self._num_aborted = 0
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._started: asyncio.Future[None] | None = None

    # ---- the event loop's side

    async def start(self) -> None:
        self._started = asyncio.get_running_loop().create_future()
        self._thread.start()
        await self._started

    async def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def submit(self, job: Job) -> JobStream:
        if self._is_dead or self._stopping:
            raise EngineFailedError("The speech engine is not running.", retry_after_s=5)
        if not self._is_ready:
            raise ModelLoadingError("The model is still loading.", retry_after_s=5)
        self._admission.enter(job, retry_after_s=self._retry_after_s())
        stream = JobStream(job, self._abort, engine=self.name)
        with self._wake:
            self._inbox.append(stream)
            self._wake.notify()
        return stream

    def stats(self) -> EngineStats:
        scheduler, stepper, runner = self._scheduler, self._stepper, self._runner
        busy = bool(scheduler.running)
        counters = stepper.stats() if stepper is not None else {}
        return EngineStats(
            engine=self.name,
            device=runner.device_name if runner is not None else "",
            dtype=runner.dtype_name if runner is not None else "",
            is_ready=self._is_ready and not self._is_dead,
            num_waiting=scheduler.num_waiting + len(self._inbox),
            num_running=len(scheduler.running),
            num_paused=len(scheduler.paused),
            num_slots=self._config.limits.num_slots,
            queued_s=self._admission.queued_s,
            num_aborted=self._num_aborted,
            last_step_age_s=time.monotonic() - self._beat_s if busy else 0.0,
            **counters,
        )

    def _retry_after_s(self) -> int:
        """How long until a job's worth of the queue is likely to be spoken, in whole seconds."""
        per_job = self._admission.queued_s / max(1, self._admission.num_jobs)
        return max(1, min(30, round(per_job / self._config.limits.num_slots)))

    def _abort(self, stream: JobStream) -> None:
        with self._wake:
            self._outbox.append(stream)
            self._wake.notify()

    # ---- the engine's thread

    def _run(self) -> None:
        try:
            self._runner = self._load()
            self._stepper = Stepper(
                self._runner, self._scheduler, self._config.profile, self._config.max_steps
            )
            self._runner.warm_up()
        except BaseException as error:  # noqa: BLE001 - whatever the load raises is the starter's to see
            self._is_dead = True
            self._resolve_start(error)
            return
        self._is_ready = True
        self._resolve_start(None)
        while not self._stopping and not self._is_dead:
            try:
                self._loop()
            except Exception as error:
                logger.exception("The engine's loop failed")
                self._recover(error)
        self._is_ready = False
        self._receive()
        self._fail_all(EngineFailedError("The speech engine has stopped."))

    def _loop(self) -> None:
        assert self._stepper is not None
        while not self._stopping:
            self._beat_s = time.monotonic()
            self._receive()
            self._end_overdue()
            plan = self._scheduler.plan()
            if plan.is_idle:
                self._sleep()
                continue
            for job in self._stepper.step(plan):
                self._close(job)

    def _sleep(self) -> None:
        with self._wake:
            if not self._inbox and not self._outbox and not self._stopping:
                # Paused rows are looked at again soon: their readers make no call when they read.
                self._wake.wait(0.02 if self._scheduler.paused else IDLE_WAIT_S)

    def _receive(self) -> None:
        with self._wake:
            arrived, self._inbox = self._inbox, deque()
            aborted, self._outbox = self._outbox, deque()
        for stream in arrived:
            self._scheduler.add(stream)
        for stream in aborted:
            for job in [job for job in self._scheduler.jobs if job.stream is stream]:
                self._num_aborted += 1
                self._end(job, Status.ABORTED, None)

    def _end_overdue(self) -> None:
        overdue = self._scheduler.overdue()
        for job in overdue.unbegun:
            error = OverloadedError("The server is too busy. Try again shortly.", retry_after_s=5)
            self._end(job, Status.FAILED, error)
        for job in overdue.stalled:
            error_ = RequestTimeoutError("The reader stopped reading.")
            self._end(job, Status.FAILED, error_)

    def _end(self, job: JobState, status: Status, error: SpeechError | None) -> None:
        assert self._stepper is not None
        self._stepper.drop(job, status)
        if error is not None:
            job.stream.fail(error)
        self._admission.leave(job.stream.job)

    def _close(self, job: JobState) -> None:
        """A job that the step ended, well or not; its stream knows already."""
        self._admission.leave(job.stream.job)

    def _recover(self, error: Exception) -> None:
        """All that runs is lost; start over, unless the device is gone or this keeps happening."""
        self._fail_all(EngineFailedError("The speech engine failed. Try again.", retry_after_s=2))
        now = time.monotonic()
        too_often = (
            len(self._restarts) == MAX_RESTARTS and now - self._restarts[0] < RESTART_PERIOD_S
        )
        if is_fatal(error) or too_often:
            self._is_dead = True
            if self._on_dead is not None:
                self._on_dead(error)
            return
        self._restarts.append(now)

    def _fail_all(self, error: SpeechError) -> None:
        for job in tuple(self._scheduler.jobs):
            self._end(job, Status.FAILED, error)

    def _resolve_start(self, error: BaseException | None) -> None:
        started = self._started
        assert started is not None

        def resolve() -> None:
            if started.cancelled():
                return
            if error is None:
                started.set_result(None)
            else:
                started.set_exception(error)

        started.get_loop().call_soon_threadsafe(resolve)
