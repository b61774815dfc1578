"""Is it alive, may it get traffic, and how does it do. No queue, disk or storage on the way."""

import time
from typing import Final

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from chattts_api.api.errors import error_response
from chattts_api.api.services import Services
from chattts_api.errors import (
    DrainingError,
    EngineFailedError,
    ModelLoadingError,
    UnavailableError,
)
from chattts_api.types import EngineStats

SLOW_S: Final = 30.0  # an engine whose step takes longer gets no traffic
STUCK_S: Final = 60.0  # and after this the process asks to be restarted


def why_unready(services: Services, stats: EngineStats) -> UnavailableError | None:
    """What keeps traffic away, if anything does. A full queue does not."""
    if services.admission.is_draining:
        return DrainingError("The server is shutting down.", retry_after_s=5)
    if not stats.is_ready:
        return ModelLoadingError("The engine is not ready.", retry_after_s=5)
    if stats.last_step_age_s > SLOW_S:
        return EngineFailedError("The engine makes no progress.", retry_after_s=10)
    if services.admission.breaker.is_open:
        return EngineFailedError("The speech engine keeps failing.", retry_after_s=2)
    return None


def health_routes(services: Services) -> APIRouter:
    router = APIRouter(tags=["health"])
    began_s = time.monotonic()

    async def live() -> Response:
        if services.synthesis.engine.stats().last_step_age_s > STUCK_S:
            return error_response(EngineFailedError("The engine is stuck.", retry_after_s=10))
        return JSONResponse({"status": "ok"})

    async def ready() -> Response:
        stats = services.synthesis.engine.stats()
        if (reason := why_unready(services, stats)) is not None:
            return error_response(reason)
        return JSONResponse({"status": "ok", "engine": stats.engine, "load": _load(stats)})

    async def health() -> Response:
        stats = services.synthesis.engine.stats()
        reason = why_unready(services, stats)
        status = "ok" if reason is None else reason.code
        body = {"status": status, "uptime_s": round(time.monotonic() - began_s, 1), **report(stats)}
        return JSONResponse(body)

    router.add_api_route("/health/live", live, methods=["GET"])
    router.add_api_route("/health/ready", ready, methods=["GET"])
    router.add_api_route("/health", health, methods=["GET"])
    return router


def report(stats: EngineStats) -> dict[str, object]:
    return {
        "model_loaded": stats.is_ready and stats.engine == "chattts",
        "engine": stats.engine,
        "device": stats.device,
        "dtype": stats.dtype,
        "gpu_free_memory": stats.free_memory_bytes,
        "queue_length": stats.num_waiting,
        "running": stats.num_running,
        "queued_s": round(stats.queued_s, 2),
        "notice": stats.notice or None,
        "progress": stats.progress,
    }


def _load(stats: EngineStats) -> float:
    return round((stats.num_running + stats.num_waiting) / max(1, stats.num_slots), 2)
