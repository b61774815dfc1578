"""The routes of the deployment guides, so that their readers' scripts work unchanged.

`POST /tts` answers with a link to a WAV file; `POST /v1/tts` with the samples as JSON.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, TypeVar

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from chattts_api.api.body import read_json_object
from chattts_api.api.connection import ClientGoneError, break_off, run_while_connected
from chattts_api.api.downloads import DownloadShelf
from chattts_api.api.errors import renamed
from chattts_api.api.guard.caller import caller_of, request_id_of
from chattts_api.api.metrics import Account
from chattts_api.api.openapi import described_answer, described_body
from chattts_api.api.services import Services, num_dropped
from chattts_api.api.speech import NO_MARK
from chattts_api.audio.encoder import encode_whole
from chattts_api.errors import SpeechError
from chattts_api.request import DEFAULT_VOICE, DEFAULTS, MAX_SEED, invalid_field
from chattts_api.synthesis import Speech
from chattts_api.types import Samples

MAX_TTS_TEXT: Final = 1000
MAX_V1_TEXT: Final = 500
_CONFIG: Final = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)
_TOO_LONG: Final[dict[str, Any]] = {
    "description": "The text is too long, in the words of the guide; or an error like any other.",
    "content": {"application/json": {}},
}
_SAY: Final = "a string"
_WHO: Final = f"a voice's name or a whole number from 0 to {MAX_SEED}"
_Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]


class _TtsFields(BaseModel):
    model_config = _CONFIG

    text: str = Field(description=_SAY)
    voice: _Seed | str = Field(default=DEFAULT_VOICE, description=_WHO)


class _V1TtsFields(BaseModel):
    model_config = _CONFIG

    text: str = Field(
        min_length=1, max_length=MAX_V1_TEXT, description="a string of 1 to 500 characters"
    )
    speaker: _Seed | str = Field(default=DEFAULT_VOICE, description=_WHO)
    speed: float = Field(
        default=1.0,
        ge=0.5,
        le=2.0,
        allow_inf_nan=False,
        description="a number from 0.5 to 2.0",
    )


_Fields = TypeVar("_Fields", bound=BaseModel)
_Work = Callable[[dict[str, Any], Scope, Account], Coroutine[None, None, Response]]


class _WorkResponse(Response):
    """Runs a request's work while its client stays, then sends what came of it."""

    def __init__(self, services: Services, work: _Work) -> None:
        super().__init__()
        self._services = services
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        with services.metrics.request("classic") as account, services.admission.inside():
            fields = await read_json_object(Request(scope, receive))

            async def answer() -> None:
                try:
                    response = await self._work(fields, scope, account)
                except SpeechError as error:
                    raise renamed(error, "input", "text") from None
                await response(scope, receive, send)

            try:
                await run_while_connected(receive, answer())
            except ClientGoneError:
                account.cancel()
                break_off(scope)


def classic_routes(services: Services, shelf: DownloadShelf) -> APIRouter:
    router = APIRouter(tags=["classic"])

    async def to_link(fields: dict[str, Any], scope: Scope, account: Account) -> Response:
        given = _checked(_TtsFields, fields)
        if len(given.text) > MAX_TTS_TEXT:
            account.outcome = "client_error"
            return JSONResponse({"detail": "text too long"}, status_code=400)
        speech, samples = await _spoken(
            services, scope, account, {"input": given.text, "voice": _voice(given.voice)}
        )
        wav = await asyncio.to_thread(encode_whole, samples, "wav", metadata=NO_MARK)
        name = await asyncio.to_thread(shelf.put, wav, caller_of(scope).owner)
        return JSONResponse({"url": f"/download/{name}"}, headers=_headers(speech))

    async def to_samples(fields: dict[str, Any], scope: Scope, account: Account) -> Response:
        began_s = time.monotonic()
        given = _checked(_V1TtsFields, fields)
        asked = {"input": given.text, "voice": _voice(given.speaker), "speed": given.speed}
        speech, samples = await _spoken(services, scope, account, asked)
        elapsed_ms = round((time.monotonic() - began_s) * 1000, 1)
        body = await asyncio.to_thread(
            _samples_json, samples, speech.plan.request.sample_rate, elapsed_ms
        )
        return Response(body, media_type="application/json", headers=_headers(speech))

    async def tts() -> Response:
        return _WorkResponse(services, to_link)

    async def v1_tts() -> Response:
        return _WorkResponse(services, to_samples)

    async def download(request: Request, name: str) -> Response:
        path = shelf.get(name, caller_of(request.scope).owner)
        return FileResponse(path, media_type="audio/wav", filename=f"{name}.wav")

    router.add_api_route(
        "/tts",
        tts,
        methods=["POST"],
        openapi_extra=described_body(_TtsFields),
        responses={400: _TOO_LONG},
    )
    router.add_api_route(
        "/v1/tts", v1_tts, methods=["POST"], openapi_extra=described_body(_V1TtsFields)
    )
    router.add_api_route(
        "/download/{name}",
        download,
        methods=["GET"],
        response_class=Response,
        responses=described_answer("audio/wav"),
    )
    return router


async def _spoken(
    services: Services, scope: Scope, account: Account, asked: dict[str, object]
) -> tuple[Speech, Samples]:
    """A whole speech as samples."""
    caller = caller_of(scope)
    request = services.parse(asked, caller, request_id_of(scope), DEFAULTS)
    speech = await services.begin(request, caller, account)
    try:
        pieces = [samples async for samples in speech]
    finally:
        speech.abort()
    account.spoken(speech.seconds, num_dropped(speech.reading))
    return speech, np.concatenate(pieces)


def _checked(model: type[_Fields], fields: dict[str, Any]) -> _Fields:
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise invalid_field(model, error) from None


def _voice(given: int | str) -> str:
    """A whole number is a seed, as the guides have it."""
    return f"seed:{given}" if isinstance(given, int) else given


def _headers(speech: Speech) -> dict[str, str]:
    return {
        "x-engine": speech.engine,
        "x-seed": str(speech.seed),
        "x-text-dropped": str(num_dropped(speech.reading)),
    }


def _samples_json(samples: Samples, sample_rate: int, elapsed_ms: float) -> bytes:
    body = {
        "audio_data": np.round(samples.astype(np.float64), 5).tolist(),
        "sample_rate": sample_rate,
        "inference_time_ms": elapsed_ms,
    }
    return json.dumps(body, separators=(",", ":")).encode()
