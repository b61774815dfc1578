"""Speaks a plan into a sound of the shelf, telling how far it is."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from chattts_api.dialogue.conversation import Begin
from chattts_api.synthesis import Plan
from chattts_api.ui.sounds import Sound

REPORT_EVERY_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one speech is."""

    segments_done: int
    num_segments: int
    seconds: float
    elapsed_s: float
    engine: str
    seed: int
    is_done: bool = False
    is_cut: bool = False

    @classmethod
    def begun(cls, plan: Plan) -> "Progress":
        """Nothing spoken yet."""
        return cls(0, len(plan.job.segments), 0.0, 0.0, "", plan.job.seed)

    @property
    def rtf(self) -> float:
        """Seconds of work for a second of sound: below 1 is faster than real time."""
        return self.elapsed_s / self.seconds if self.seconds else 0.0


async def speak_into(begin: Begin, plan: Plan, sound: Sound) -> AsyncGenerator[Progress]:
    """Progress a few times a second, the last with is_done. Leaving early frees the engine."""
    began = time.monotonic()
    reported = 0.0
    num_segments = len(plan.job.segments)

    def progress(*, is_done: bool) -> Progress:
        return Progress(
            segments_done=num_segments if is_done else speech.segments_done,
            num_segments=num_segments,
            seconds=sound.seconds,
            elapsed_s=time.monotonic() - began,
            engine=speech.engine,
            seed=speech.seed,
            is_done=is_done,
            is_cut=speech.finish_reason == "length",
        )

    try:
        speech = await begin(plan)
        async with aclosing(aiter(speech)) as pieces:
            async for samples in pieces:
                sound.write(samples)
                if time.monotonic() - reported >= REPORT_EVERY_S:
                    reported = time.monotonic()
                    yield progress(is_done=False)
        sound.close()
        yield progress(is_done=True)
    finally:
        sound.close()
