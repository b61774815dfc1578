"""The engine's own figures, read at each scrape. Names and labels are fixed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from chattts_api.api.openapi import described_answer
from chattts_api.types import EngineStats

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STATM: Final = Path("/proc/self/statm")


class EngineCollector(Collector):
    """Turns a snapshot of the engine into metrics."""

    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats

    def describe(self) -> list[Metric]:
        return []  # nothing is read before the first scrape

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        mean_rows = stats.num_rows / stats.num_steps if stats.num_steps else 0.0
        yield _counter("tts_engine_steps", "Decode steps.", stats.num_steps)
        yield _counter("tts_engine_rows", "Rows of all decode steps.", stats.num_rows)
        yield _gauge("tts_engine_rows_per_step", "Mean rows of a decode step.", mean_rows)
        yield _counter("tts_engine_finished", "Jobs spoken to the end.", stats.num_finished)
        yield _counter("tts_engine_failed", "Jobs that failed.", stats.num_failed)
        yield _counter("tts_engine_aborts", "Jobs given up by their reader.", stats.num_aborted)
        yield _counter("tts_engine_retries", "Rows made again.", stats.num_retried)
        yield _counter("tts_engine_truncated", "Rows cut at their budget.", stats.num_truncated)
        yield _counter("tts_engine_audio_seconds", "Speech made.", stats.audio_s)
        yield _counter("tts_engine_begun", "Jobs begun.", stats.num_begun)
        yield _counter("tts_queue_wait_seconds", "Waits of the jobs begun.", stats.waited_s)
        yield _counter("tts_engine_restarts", "Starts after a fault.", stats.num_restarts)
        yield _gauge("tts_engine_ready", "Whether it takes jobs.", float(stats.is_ready))
        yield _gauge("tts_engine_waiting", "Rows waiting.", stats.num_waiting)
        yield _gauge("tts_engine_running", "Rows running.", stats.num_running)
        yield _gauge("tts_engine_paused", "Rows paused for slow readers.", stats.num_paused)
        yield _gauge("tts_engine_queued_seconds", "Speech queued.", stats.queued_s)
        yield _gauge("tts_engine_last_step_age_seconds", "Since it moved.", stats.last_step_age_s)
        if stats.free_memory_bytes is not None:
            free = stats.free_memory_bytes
            yield _gauge("tts_device_free_memory_bytes", "Free memory of the device.", free)
        yield _gauge("tts_process_resident_bytes", "Memory of the process.", resident_bytes())


def metrics_routes(registry: CollectorRegistry) -> APIRouter:
    router = APIRouter(tags=["health"])

    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    router.add_api_route(
        "/metrics",
        metrics,
        methods=["GET"],
        response_class=Response,
        responses=described_answer("text/plain"),
    )
    return router


def resident_bytes() -> int:
    """This process's resident memory; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
