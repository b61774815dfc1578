"""One row's whole life, and the job that it belongs to. No tensors."""

from dataclasses import dataclass, field
from enum import Enum, auto

from chattts_api.engine.joiner import WindowJoiner
from chattts_api.engine.stream import JobStream
from chattts_api.engine.windows import StreamProfile, WindowCursor
from chattts_api.types import FinishReason, SamplingParams, Segment, Style, Voice


class Phase(Enum):
    REFINE = auto()  # writes text; comes back as a CODE row
    CODE = auto()


class Status(Enum):
    WAITING = auto()
    RUNNING = auto()
    PAUSED = auto()  # keeps its slot, makes no steps: its reader is slow
    DONE = auto()
    FAILED = auto()
    ABORTED = auto()


@dataclass(eq=False, slots=True)
class JobState:
    """A job inside the engine: its stream and its rows, one a segment."""

    stream: JobStream
    arrived_s: float
    sequences: list["Sequence"] = field(default_factory=list)
    next_segment: int = 0
    num_open: int = 0
    """Rows that have begun and not ended."""
    stalled_since_s: float | None = None

    @property
    def has_waiting(self) -> bool:
        return self.next_segment < len(self.sequences)

    @property
    def has_begun(self) -> bool:
        return self.next_segment > 0

    @property
    def is_done(self) -> bool:
        return all(s.status is Status.DONE for s in self.sequences)


@dataclass(eq=False, slots=True)
class Sequence:
    """One segment being spoken as one row.

    Attributes:
        attempt: 0, then 1, 2 for retries; the seed of each is derived from it.
        slot: the row's place in every per-slot buffer while it runs.
        refined: the text that the refine pass wrote, once it has.
        num_emitted: samples handed out.
    """

    job: JobState
    index: int
    phase: Phase
    status: Status = Status.WAITING
    attempt: int = 0
    slot: int = -1
    num_prompt: int = 0
    num_steps: int = 0
    num_emitted: int = 0
    refined: tuple[int, ...] | None = None
    cursor: WindowCursor | None = None
    joiner: WindowJoiner | None = None
    finish_reason: FinishReason | None = None

    @property
    def segment(self) -> Segment:
        return self.job.stream.job.segments[self.index]

    @property
    def voice(self) -> Voice:
        return self.job.stream.job.voice

    @property
    def sampling(self) -> SamplingParams:
        return self.job.stream.job.sampling

    @property
    def style(self) -> Style:
        return self.job.stream.job.style

    @property
    def has_sound_out(self) -> bool:
        return self.num_emitted > 0

    def begin_sound(self, profile: StreamProfile) -> None:
        """Start (again) at the first step."""
        self.cursor = WindowCursor(profile)
        self.joiner = WindowJoiner(profile)
        self.num_steps = 0


def open_job(stream: JobStream, now_s: float) -> JobState:
    """The rows of a job, none of them begun."""
    state = JobState(stream, now_s)
    phase = Phase.REFINE if stream.job.style.is_refined else Phase.CODE
    state.sequences = [Sequence(state, index, phase) for index in range(len(stream.job.segments))]
    return state
