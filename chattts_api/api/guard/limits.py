"""Two limits for each caller, requests and characters a minute, exact over every surface.

slowapi's limiter counts in this process. Where Redis is set it is asked first, so that several
servers share one budget; a Redis that fails or freezes costs one call a quarter of a second, and
then this process's own count stands until it answers again.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError
from slowapi import Limiter

from chattts_api.api.guard.caller import Caller
from chattts_api.api.guard.window import MonotonicStorage
from chattts_api.errors import InputTooLongError, RateLimitedError

logger = logging.getLogger(__name__)

REDIS_TIMEOUT_S: Final = 0.2
REDIS_REST_S: Final = 1.0
MAX_WRONG_KEYS: Final = 1000  # a minute from one address
_PERIOD_S: Final = 60


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a caller stands after a request was counted, for the x-ratelimit headers."""

    limit: int
    remaining: int
    reset_s: float


class RateLimits:
    """Counts what callers use. All methods raise RateLimitedError when a budget is spent."""

    def __init__(
        self,
        storage: str = "memory://",
        *,
        on_state: Callable[[bool], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._limiter = Limiter(
            key_func=str,
            strategy="moving-window",
            storage_uri="monotonic://",
            storage_options={"clock": clock},  # type: ignore[dict-item]
        )
        local = self._limiter._storage  # noqa: SLF001 - the limiter has no public name for it
        assert isinstance(local, MonotonicStorage)
        self._local = local
        self._shared = None if storage.startswith("memory") else SharedCount(storage, on_state)

    async def charge_request(self, caller: Caller) -> Standing | None:
        """Count one request. None: the caller has no limit."""
        amount = caller.limits.requests
        if amount is None:
            return None
        item = RateLimitItemPerMinute(amount)
        await self._hit(item, ("requests", caller.bucket), 1)
        oldest_s, used = self._local.get_moving_window(
            item.key_for("requests", caller.bucket), amount, _PERIOD_S
        )
        reset_s = max(0.0, oldest_s + _PERIOD_S - self._clock())
        return Standing(amount, max(0, amount - used), reset_s)

    async def charge_characters(self, caller: Caller, num_characters: int) -> None:
        """Count the characters of a text."""
        amount = caller.limits.characters
        if amount is None:
            return
        if num_characters > amount:
            raise InputTooLongError(
                f"input is longer than the {amount} characters a minute that are allowed here.",
                param="input",
            )
        item = RateLimitItemPerMinute(amount)
        await self._hit(item, ("characters", caller.bucket), num_characters)

    def charge_wrong_key(self, address: str) -> None:
        """Count a wrong key. This process's own count is enough: guessing is hopeless anyway."""
        item = RateLimitItemPerMinute(MAX_WRONG_KEYS)
        if not self._limiter.limiter.hit(item, "wrong-keys", address):
            raise self._refusal(item.key_for("wrong-keys", address), MAX_WRONG_KEYS, 1)

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def _hit(self, item: RateLimitItemPerMinute, names: tuple[str, str], cost: int) -> None:
        key = item.key_for(*names)
        if self._shared is not None and not await self._shared.hit(item, names, cost):
            raise self._refusal(key, item.amount, cost)
        if not self._limiter.limiter.hit(item, *names, cost=cost):
            raise self._refusal(key, item.amount, cost)

    def _refusal(self, key: str, amount: int, cost: int) -> RateLimitedError:
        wait_s = self._local.wait_s(key, amount, _PERIOD_S, cost)
        retry_after_s = max(1, math.ceil(wait_s))
        return RateLimitedError(
            f"Too much in one minute. Try again in {retry_after_s} s.", retry_after_s=retry_after_s
        )


class SharedCount:
    """A count in Redis that several servers share, and that may fail without anybody noticing."""

    def __init__(self, uri: str, on_state: Callable[[bool], None] | None) -> None:
        storage = RedisStorage(
            f"async+{uri}",
            wrap_exceptions=True,
            implementation="redispy",
            socket_timeout=REDIS_TIMEOUT_S,
            socket_connect_timeout=REDIS_TIMEOUT_S,
        )
        self._storage = storage
        self._limiter = MovingWindowRateLimiter(storage)
        self._on_state = on_state
        self._is_up = True
        self._is_probing = False
        self._ask_again_s = 0.0

    async def hit(self, item: RateLimitItemPerMinute, names: tuple[str, str], cost: int) -> bool:
        """Whether the shared budget lets this in; also yes while Redis does not answer."""
        is_resting = self._is_probing or time.monotonic() < self._ask_again_s
        if not self._is_up and is_resting:
            return True
        self._is_probing = not self._is_up
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_S):
                is_admitted = await self._limiter.hit(item, *names, cost=cost)
        except (StorageError, OSError, TimeoutError):
            self._note(is_up=False)
            return True
        finally:
            self._is_probing = False
        self._note(is_up=True)
        return is_admitted

    async def close(self) -> None:
        await self._storage.bridge.get_connection().aclose()  # type: ignore[attr-defined]

    def _note(self, *, is_up: bool) -> None:
        if not is_up:
            self._ask_again_s = time.monotonic() + REDIS_REST_S
        if is_up != self._is_up:
            self._is_up = is_up
            logger.warning("The rate limits' Redis %s", "answers" if is_up else "does not answer")
            if self._on_state is not None:
                self._on_state(is_up)
