"""What crosses the layers: frozen data, no behaviour, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float32]  # [N], mono, 24 kHz unless said otherwise, -1 to 1

SAMPLE_RATE = 24_000
STEP_SAMPLES = 512  # one step of the model is 512 samples, 21.33 ms
STEPS_PER_SECOND = SAMPLE_RATE / STEP_SAMPLES
SPEAKER_SIZE = 768

AudioFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
Language = Literal["auto", "zh", "en"]
FinishReason = Literal["stop", "length", "silence"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How codes are drawn. Ranges are those of contract.md section 1."""

    temperature: float = 0.3
    top_p: float = 0.7
    top_k: int = 20
    repetition_penalty: float = 1.05


@dataclass(frozen=True, slots=True)
class Style:
    """The model's own style tokens: `[speed_N]`, and those of the refine pass."""

    speed_token: int = 5
    refine: bool = False
    oral: int | None = None
    laugh: int | None = None
    break_: int | None = None

    @property
    def is_refined(self) -> bool:
        return self.refine or any(v is not None for v in (self.oral, self.laugh, self.break_))


@dataclass(frozen=True, slots=True, eq=False)
class SamplePrompt:
    """A recorded sample as codes: codes uint16 [4, T] and its transcript."""

    codes: npt.NDArray[np.uint16]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """Somebody to speak as.

    `speaker` is the float16 vector [768] before normalisation, or None for the model's
    `[empty_spk]`. `gender` (female, male, neutral) and `language` also steer the built-in voice.
    """

    id: str
    name: str
    speaker: npt.NDArray[np.float16] | None = None
    sample: SamplePrompt | None = None
    gender: Literal["female", "male", "neutral"] = "neutral"
    language: str = "zh"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Input characters [start, end) that are read as something else."""

    start: int
    end: int
    written: str
    spoken: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Input characters [start, end) that no sound stands for."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Segment:
    """At most about 20 s of speech, generated as one row.

    Attributes:
        text: what the model sees: the speakable set and in-text tokens only (contract.md 2).
        spoken: the same piece of `spoken`, for the built-in voice.
        language: the language of most of it.
        max_steps: step budget, from the spoken length with a margin.
        lead_s: silence before it (a `[pause ...]` that opens the text).
        pause_s: silence after it.
    """

    text: str
    spoken: str
    language: Literal["zh", "en"]
    max_steps: int
    lead_s: float = 0.0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text front end made of one input; positions are those of the input."""

    spoken: str
    segments: tuple[Segment, ...]
    replaced: tuple[Replacement, ...]
    dropped: tuple[Dropped, ...]
    language: Literal["zh", "en"]
    marks: Mapping[str, int] = field(default_factory=dict)
    """Parameters found in the text, the last of each kind: oral, laugh, break, speed."""


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One validated request, whatever surface it came by (contract.md section 1)."""

    input: str
    voice: Voice
    request_id: str
    model: str = "chattts"
    response_format: AudioFormat = "mp3"
    speed: float = 1.0
    stream_format: Literal["audio", "sse"] = "audio"
    stream: bool = True
    instructions: str | None = None
    seed: int | None = None
    sampling: SamplingParams = SamplingParams()
    style: Style = Style()
    lang: Language = "auto"
    normalize: bool = True
    lexicon: Mapping[str, str] = field(default_factory=dict)
    sample_rate: int = SAMPLE_RATE


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What an engine is asked to speak: the segments of one request, in order.

    `min_steps` forbids each segment's end until then (benchmarks; 0 for speech).
    """

    request_id: str
    segments: tuple[Segment, ...]
    voice: Voice
    sampling: SamplingParams
    style: Style
    seed: int
    min_steps: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class AudioChunk:
    """A piece of one segment's sound; the chunks of a segment follow one another gaplessly.

    The last chunk of a segment has `finish_reason`; it may hold no samples.
    """

    segment: int
    samples: Samples
    num_steps: int = 0
    finish_reason: FinishReason | None = None

    @property
    def is_last(self) -> bool:
        return self.finish_reason is not None


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot of an engine. Counters since start, gauges now."""

    engine: str
    device: str
    dtype: str
    is_ready: bool
    num_waiting: int = 0
    num_running: int = 0
    num_paused: int = 0
    num_slots: int = 0
    queued_s: float = 0.0
    num_steps: int = 0
    num_rows: int = 0
    """Sum of the rows of every step; num_rows / num_steps is the mean batch."""
    num_finished: int = 0
    num_failed: int = 0
    num_aborted: int = 0
    num_retried: int = 0
    num_truncated: int = 0
    audio_s: float = 0.0
    last_step_age_s: float = 0.0
    num_begun: int = 0
    waited_s: float = 0.0
    """Seconds that the jobs begun so far had waited; waited_s / num_begun is the mean wait."""
    num_restarts: int = 0
    free_memory_bytes: int | None = None
    """Of the device, where it has memory of its own."""
    notice: str = ""
    """What a user should know of the engine: weights on their way, or how to get them."""
    progress: float | None = None
    """Of a download, 0 to 1."""
