"""A job of the built-in voice and how far it has come."""

from collections import deque
from dataclasses import dataclass

from chattts_api.engine.espeak_text import Piece, pieces_of
from chattts_api.engine.espeak_voice import espeak_voice
from chattts_api.engine.stream import JobStream

MAX_BUFFERED_S = 20.0  # made ahead of a reader
NOTHING = Piece("", "zh", 0.0)


@dataclass(slots=True)
class Counters:
    """Since the engine's start."""

    pieces: int = 0
    finished: int = 0
    failed: int = 0
    aborted: int = 0
    retried: int = 0
    samples: int = 0


class EspeakJob:
    """The pieces of a job's segments, taken one after the other."""

    def __init__(self, stream: JobStream, now: float) -> None:
        self.stream = stream
        self.voice = espeak_voice(stream.job.voice, stream.job.style.speed_token)
        self.has_begun = False
        self._kept_up_at = now
        self._pieces: deque[tuple[int, Piece, bool]] = deque()
        for index, segment in enumerate(stream.job.segments):
            pieces = pieces_of(segment.spoken, segment.language) or [NOTHING]
            self._pieces += [(index, piece, False) for piece in pieces[:-1]]
            self._pieces.append((index, pieces[-1], True))

    @property
    def is_paused(self) -> bool:
        return self.stream.buffered_s > MAX_BUFFERED_S

    @property
    def is_done(self) -> bool:
        return not self._pieces

    def take(self) -> tuple[int, Piece, bool]:
        """The next piece, its segment, and whether it is that segment's last."""
        self.has_begun = True
        return self._pieces.popleft()

    def stalled_s(self, now: float) -> float:
        """How long the reader has left its full buffer alone."""
        if not self.is_paused:
            self._kept_up_at = now
        return now - self._kept_up_at
