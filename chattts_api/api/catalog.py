"""The lists of models and voices, in the one shape that every client reads."""

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from chattts_api.api.guard.caller import caller_of
from chattts_api.api.services import Services
from chattts_api.errors import ModelNotFoundError
from chattts_api.request import KNOWN_MODELS
from chattts_api.types import Voice

_CREATED: Final = 1_717_200_000  # when ChatTTS's weights were first published


def model_entry(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "chattts"}


def voice_entry(voice: Voice) -> dict[str, object]:
    return {
        "id": voice.id,
        "name": voice.name,
        "object": "audio.voice",
        "gender": voice.gender,
        "language": voice.language,
        "description": voice.description,
    }


def catalog_routes(services: Services) -> APIRouter:
    router = APIRouter(tags=["catalog"])

    async def list_models() -> Response:
        entries = [model_entry(name) for name in KNOWN_MODELS]
        return JSONResponse({"object": "list", "data": entries, "models": entries})

    async def get_model(model: str) -> Response:
        if model not in KNOWN_MODELS:
            raise ModelNotFoundError("No such model. GET /v1/models lists those there are.")
        return JSONResponse(model_entry(model))

    async def list_voices(request: Request) -> Response:
        owner = caller_of(request.scope).owner
        entries = [voice_entry(voice) for voice in services.catalog.list(owner)]
        return JSONResponse({"object": "list", "voices": entries, "data": entries})

    for prefix in ("/v1", ""):
        shown = bool(prefix)
        for path in (f"{prefix}/models", f"{prefix}/audio/models"):
            router.add_api_route(path, list_models, methods=["GET"], include_in_schema=shown)
        router.add_api_route(
            f"{prefix}/models/{{model}}", get_model, methods=["GET"], include_in_schema=shown
        )
        router.add_api_route(
            f"{prefix}/audio/voices", list_voices, methods=["GET"], include_in_schema=shown
        )
    return router
