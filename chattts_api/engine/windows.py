"""Which steps of a row are turned into sound together. Arithmetic only: no tensors, no threads.

A row is cut at fixed boundaries that depend on nothing but the profile, so that the same row gives
the same windows alone or in a crowd. Window k speaks the steps between its two boundaries, seen
with `left` steps of context before and `right` steps after:

        left context      spoken       right context
    ...|-------------|##############|------------|
       start       begin           end          stop

It is due once `stop` steps exist, or when the row has ended. Where two windows meet, `fade`
samples of the earlier one's right context are cross-faded into the later one.
"""

from dataclasses import dataclass

from chattts_api.types import STEP_SAMPLES

FRAME_SAMPLES = STEP_SAMPLES // 2  # one mel frame; T steps decoded whole give (2 T - 1) frames


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """How a row is cut into windows.

    Attributes:
        sizes: steps spoken by window 0, 1, ...; the last figure repeats.
        rights: steps of look-ahead of window 0, 1, ...; the last figure repeats.
        left: steps of context before each window.
        fade: samples over which neighbours are cross-faded.
    """

    name: str
    sizes: tuple[int, ...]
    rights: tuple[int, ...]
    left: int
    fade: int

    def __post_init__(self) -> None:
        assert self.sizes
        assert min(self.sizes) > 0
        assert self.rights
        assert self.fade <= (min(self.rights) * 2 - 1) * FRAME_SAMPLES

    def size(self, index: int) -> int:
        return self.sizes[min(index, len(self.sizes) - 1)]

    def right(self, index: int) -> int:
        return self.rights[min(index, len(self.rights) - 1)]


PROFILES = {
    profile.name: profile
    for profile in (
        StreamProfile("latency", (4, 8, 16, 32), (2, 4, 8, 10), left=20, fade=256),
        StreamProfile("balanced", (6, 12, 24, 48), (4, 8, 12, 16), left=26, fade=256),
        StreamProfile("exact", (16, 32, 64), (52,), left=52, fade=256),
    )
}


@dataclass(frozen=True, slots=True)
class Window:
    """Steps [start, stop) are decoded; of their sound, that of [begin, end) is spoken.

    `is_last`: the row has ended at `stop` == `end`.
    """

    index: int
    start: int
    begin: int
    end: int
    stop: int
    is_last: bool

    @property
    def num_steps(self) -> int:
        return self.stop - self.start

    @property
    def offset(self) -> int:
        """Samples of left context to leave out."""
        return (self.begin - self.start) * STEP_SAMPLES

    @property
    def num_samples(self) -> int:
        """Samples that this window speaks."""
        spoken = (self.end - self.begin) * STEP_SAMPLES
        return spoken - FRAME_SAMPLES if self.is_last else spoken


class WindowCursor:
    """Walks one row's windows."""

    __slots__ = ("_begin", "_index", "_profile")

    def __init__(self, profile: StreamProfile) -> None:
        self._profile = profile
        self._index = 0
        self._begin = 0

    @property
    def due_at(self) -> int:
        """Steps that must exist before the next window can be decoded."""
        size, right = self._profile.size(self._index), self._profile.right(self._index)
        return self._begin + size + right

    def take(self) -> Window:
        """The next window of a row that goes on; `due_at` steps exist."""
        end = self._begin + self._profile.size(self._index)
        return self._advance(end, end + self._profile.right(self._index), is_last=False)

    def take_rest(self, num_steps: int) -> list[Window]:
        """All windows that remain once the row has ended after `num_steps`."""
        windows = []
        while self._begin < num_steps:
            end = self._begin + self._profile.size(self._index)
            stop = end + self._profile.right(self._index)
            if stop >= num_steps:  # the end is in sight: one window speaks all that is left
                end = stop = num_steps
            windows.append(self._advance(end, stop, is_last=end == num_steps))
        return windows

    def _advance(self, end: int, stop: int, *, is_last: bool) -> Window:
        start = max(0, self._begin - self._profile.left)
        window = Window(self._index, start, self._begin, end, stop, is_last)
        self._begin = end
        self._index += 1
        return window
