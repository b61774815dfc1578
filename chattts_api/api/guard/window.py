"""A moving window in memory, as a storage of the `limits` library.

The library's own memory storage counts by the wall clock, keeps a timer thread and an object for
every unit of cost. This one counts by a monotonic clock, has no thread, and bounds its keys.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from limits.storage.base import MovingWindowSupport, Storage

MAX_KEYS: Final = 20_000


class _Window:
    """The hits of one key: (when, cost), oldest first."""

    __slots__ = ("hits", "total")

    def __init__(self) -> None:
        self.hits: deque[tuple[float, int]] = deque()
        self.total = 0

    def forget_before(self, start_s: float) -> None:
        while self.hits and self.hits[0][0] <= start_s:
            self.total -= self.hits.popleft()[1]


class MonotonicStorage(Storage, MovingWindowSupport):
    """Exact for one process. The least recently hit keys are forgotten beyond MAX_KEYS."""

    STORAGE_SCHEME = ["monotonic"]  # noqa: RUF012 - the library's own spelling

    def __init__(
        self,
        uri: str | None = None,
        wrap_exceptions: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self.clock = clock
        self._windows: OrderedDict[str, _Window] = OrderedDict()

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        now_s = self.clock()
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
            if len(self._windows) > MAX_KEYS:
                self._windows.popitem(last=False)
        self._windows.move_to_end(key)
        window.forget_before(now_s - expiry)
        if window.total + amount > limit:
            return False
        window.hits.append((now_s, amount))
        window.total += amount
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        """When the oldest hit was, by this storage's clock, and how much is used."""
        now_s = self.clock()
        window = self._windows.get(key)
        if window is None:
            return now_s, 0
        window.forget_before(now_s - expiry)
        return (window.hits[0][0] if window.hits else now_s), window.total

    def wait_s(self, key: str, limit: int, expiry: int, amount: int) -> float:
        """Seconds until `amount` will be let in, if nobody else hits before."""
        now_s = self.clock()
        window = self._windows.get(key)
        if window is None:
            return 0.0
        excess = window.total + amount - limit
        for when_s, cost in window.hits:
            if excess <= 0:
                break
            excess -= cost
            if excess <= 0:
                return max(0.0, when_s + expiry - now_s)
        return 0.0 if excess <= 0 else float(expiry)

    @property
    def num_keys(self) -> int:
        return len(self._windows)

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        raise NotImplementedError

    def get(self, key: str) -> int:
        window = self._windows.get(key)
        return window.total if window is not None else 0

    def get_expiry(self, key: str) -> float:
        raise NotImplementedError

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        num_keys = len(self._windows)
        self._windows.clear()
        return num_keys

    def clear(self, key: str) -> None:
        self._windows.pop(key, None)
