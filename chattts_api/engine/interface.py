"""What every engine offers: the model's (`engine.py`), the built-in voice's (`espeak.py`)."""

from typing import Protocol

from chattts_api.engine.stream import JobStream
from chattts_api.types import EngineStats, Job


class SpeechEngine(Protocol):
    """Speaks jobs. `submit` and `abort` are called on the event loop and never block it."""

    @property
    def name(self) -> str:
        """chattts, espeak or triton: the value of the header x-engine."""

    async def start(self) -> None:
        """Load and warm up; ready when it returns. Raises SetupError."""

    async def stop(self) -> None:
        """Abort what runs and end the workers."""

    def submit(self, job: Job) -> JobStream:
        """Queue a job. Raises OverloadedError, before any work, when the queue is full."""

    def stats(self) -> EngineStats: ...
