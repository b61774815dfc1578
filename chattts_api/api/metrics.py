"""Prometheus metrics of one server, in a registry that the caller owns.

Every label has a small fixed set of values. Each request is received once and ends once, so that
`received = ok + client_error + rejected + failed + cancelled` at rest.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from chattts_api.api.connection import ClientGoneError
from chattts_api.errors import SpeechError

Surface = Literal["speech", "stream", "socket", "classic", "dialogue", "text", "page"]
Outcome = Literal["ok", "client_error", "rejected", "failed", "cancelled"]

_LATENCY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_FACTOR: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)
_REJECTIONS: Final = frozenset({408, 413, 429, 503})


class Metrics:
    """The server's own counters; the engine's are read by `EngineCollector` at a scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter(
            "tts_requests", "Speech requests received.", ["surface"], registry=registry
        )
        self.outcomes = Counter(
            "tts_request_outcomes",
            "Speech requests ended, by how.",
            ["surface", "outcome"],
            registry=registry,
        )
        self.errors = Counter(
            "tts_errors", "Errors answered, by code.", ["code"], registry=registry
        )
        self.latency_s = Histogram(
            "tts_request_latency_seconds",
            "From a request's arrival to its end.",
            ["surface"],
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.first_audio_s = Histogram(
            "tts_first_audio_seconds",
            "From a request's admission to its first sound.",
            buckets=_LATENCY_S,
            registry=registry,
        )
        self.real_time_factor = Histogram(
            "tts_real_time_factor",
            "Seconds of work per second of speech.",
            buckets=_FACTOR,
            registry=registry,
        )
        self.audio_s = Counter("tts_audio_seconds", "Seconds of speech sent.", registry=registry)
        self.dropped = Counter(
            "tts_text_dropped_characters",
            "Characters of requests that no sound stands for.",
            registry=registry,
        )
        self.in_flight = Gauge("tts_requests_in_flight", "Requests not ended.", registry=registry)
        self.limiter_up = Gauge(
            "ratelimit_backend_up", "Whether the rate limits' storage answers.", registry=registry
        )
        self.limiter_up.set(1)

    @contextmanager
    def request(self, surface: Surface) -> Iterator["Account"]:
        """Count a request in, and out by the way the block ends."""
        account = Account(self, surface)
        try:
            yield account
        except SpeechError as error:
            account.fail(error)
            raise
        except ClientGoneError:
            account.cancel()
            raise
        except Exception:
            account.outcome = "failed"
            self.errors.labels("internal").inc()
            raise
        except BaseException:
            account.cancel()
            raise
        finally:
            account.close()


class Account:
    """One request in the books."""

    def __init__(self, metrics: Metrics, surface: Surface) -> None:
        self.outcome: Outcome = "ok"
        self._metrics = metrics
        self._surface: Surface = surface
        self._began_s = time.monotonic()
        metrics.requests.labels(surface).inc()
        metrics.in_flight.inc()

    def fail(self, error: SpeechError) -> None:
        """The request ends with this error, said or not."""
        self._metrics.errors.labels(error.code).inc()
        if error.status in _REJECTIONS:
            self.outcome = "rejected"
        else:
            self.outcome = "client_error" if error.status < 500 else "failed"

    def cancel(self) -> None:
        self.outcome = "cancelled"

    def first_audio(self) -> None:
        self._metrics.first_audio_s.observe(time.monotonic() - self._began_s)

    def spoken(self, seconds: float, num_dropped: int) -> None:
        """The whole speech was handed over."""
        elapsed_s = time.monotonic() - self._began_s
        self._metrics.audio_s.inc(seconds)
        self._metrics.dropped.inc(num_dropped)
        if seconds > 0:
            self._metrics.real_time_factor.observe(elapsed_s / seconds)

    def close(self) -> None:
        metrics = self._metrics
        metrics.in_flight.dec()
        metrics.outcomes.labels(self._surface, self.outcome).inc()
        metrics.latency_s.labels(self._surface).observe(time.monotonic() - self._began_s)
