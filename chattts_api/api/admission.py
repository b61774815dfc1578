"""Who may begin: nobody while the server drains, few while the engine fails.

The engine bounds its own queue. This stands in front of it, costs nothing, and refuses before a
text is read.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from chattts_api.errors import DrainingError, EngineFailedError, OverloadedError, ServerError
from chattts_api.synthesis import Plan, Speech, Synthesis

logger = logging.getLogger(__name__)

MAX_FAILURES: Final = 5
OPEN_S: Final = 2.0


class CircuitBreaker:
    """Opens after failures in a row; then lets one probe through at a time.

    Only faults of the engine count: a full queue or a bad request says nothing about its health.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._num_failures = 0
        self._retry_at_s = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        return self._num_failures >= MAX_FAILURES

    def check(self) -> None:
        """Raises EngineFailedError while open and not ready for a probe."""
        if self.is_open and (self._is_probing or self._clock() < self._retry_at_s):
            raise EngineFailedError(
                "The speech engine keeps failing. Try again shortly.", retry_after_s=round(OPEN_S)
            )

    def enter(self) -> bool:
        """Whether this caller is the probe. Raises EngineFailedError like `check`."""
        self.check()
        if self.is_open:
            self._is_probing = True
        return self.is_open

    def succeed(self) -> None:
        if self.is_open:
            logger.warning("The engine speaks again: requests are let through")
        self._num_failures = 0

    def fail(self) -> None:
        self._num_failures += 1
        self._retry_at_s = self._clock() + OPEN_S
        if self._num_failures == MAX_FAILURES:
            logger.error("The engine failed %d times in a row: requests are refused", MAX_FAILURES)

    def leave(self, *, is_probe: bool) -> None:
        if is_probe:
            self._is_probing = False


class Admission:
    """The door of every surface that speaks."""

    def __init__(self, *, max_requests: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.breaker = CircuitBreaker(clock)
        self.draining = asyncio.Event()
        self._max_requests = max_requests
        self._num_reading = 0
        self._num_inside = 0

    @property
    def num_inside(self) -> int:
        """Requests between their arrival and their last byte."""
        return self._num_inside

    @property
    def is_draining(self) -> bool:
        return self.draining.is_set()

    def drain(self) -> None:
        """Refuse new work from now on."""
        self.draining.set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Hold a place while a request is answered. Raises DrainingError."""
        if self.is_draining:
            raise DrainingError("The server is shutting down.", retry_after_s=5)
        self._num_inside += 1
        try:
            yield
        finally:
            self._num_inside -= 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a place while a text is read. Raises OverloadedError, EngineFailedError."""
        self.breaker.check()
        if self._num_reading >= self._max_requests:
            raise OverloadedError("The server is full. Try again shortly.", retry_after_s=1)
        self._num_reading += 1
        try:
            yield
        finally:
            self._num_reading -= 1

    async def begin(self, synthesis: Synthesis, plan: Plan) -> Speech:
        """Speak a plan through the circuit breaker; returns at its first sound."""
        is_probe = self.breaker.enter()
        try:
            speech = await synthesis.speak(plan)
        except ServerError as error:
            if error.status == 500 or isinstance(error, EngineFailedError):
                self.breaker.fail()
            raise
        else:
            self.breaker.succeed()
            return speech
        finally:
            self.breaker.leave(is_probe=is_probe)
