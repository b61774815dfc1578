"""POST /v1/audio/speech: audio or server-sent events, first sound before the status line."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from chattts_api.api.body import read_json_object
from chattts_api.api.connection import (
    ClientGoneError,
    break_off,
    run_while_connected,
    send_or_give_up,
)
from chattts_api.api.errors import envelope, internal_error
from chattts_api.api.guard.caller import caller_of, request_id_of
from chattts_api.api.metrics import Account
from chattts_api.api.openapi import described_answer, described_body
from chattts_api.api.services import Services, num_dropped
from chattts_api.audio.encoder import CONTENT_TYPES, encode_whole
from chattts_api.errors import SpeechError
from chattts_api.request import documented_fields
from chattts_api.synthesis import Speech

logger = logging.getLogger(__name__)

NO_MARK: Final[dict[str, str]] = {}  # simple WAV readers take what follows the samples for sound


class SpeechResponse(Response):
    """The whole life of one speech request, from its body to its last byte."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        with services.metrics.request("speech") as account, services.admission.inside():
            fields = await read_json_object(Request(scope, receive))
            answer = _Answer(services, account, scope, send)
            try:
                await run_while_connected(receive, answer.run(fields))
            except ClientGoneError:
                account.cancel()
                break_off(scope)


class _Answer:
    """Speaks one request to one client."""

    def __init__(self, services: Services, account: Account, scope: Scope, send: Send) -> None:
        self._services = services
        self._account = account
        self._scope = scope
        self._send = send

    async def run(self, fields: dict[str, object]) -> None:
        """Raises SpeechError while nothing has been sent; after that the connection breaks."""
        caller = caller_of(self._scope)
        request = self._services.parse(fields, caller, request_id_of(self._scope))
        speech = await self._services.begin(request, caller, self._account)
        is_sse = request.stream_format == "sse"
        try:
            if is_sse or request.stream:
                async with aclosing(speech.encoded()) as pieces:
                    await self._stream(speech, await anext(pieces), pieces)
            else:
                await self._whole(speech)
        finally:
            speech.abort()
        self._account.spoken(speech.seconds, num_dropped(speech.reading))

    async def _whole(self, speech: Speech) -> None:
        request = speech.plan.request
        pieces = [samples async for samples in speech]
        body = await asyncio.to_thread(
            encode_whole,
            pieces,
            request.response_format,
            sample_rate=request.sample_rate,
            metadata=NO_MARK if request.response_format == "wav" else None,
        )
        await self._start({**_headers(speech), "content-length": str(len(body))})
        await self._body(body, more=False)

    async def _stream(self, speech: Speech, first: bytes, pieces: AsyncIterator[bytes]) -> None:
        is_sse = speech.plan.request.stream_format == "sse"
        await self._start(_headers(speech))
        try:
            await self._body(_delta(first) if is_sse else first)
            async for data in pieces:
                await self._body(_delta(data) if is_sse else data)
        except ClientGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge: this can only be told by breaking off
            await self._fail(error, is_sse=is_sse)
            return
        await self._body(_done(speech) if is_sse else b"", more=False)

    async def _fail(self, error: Exception, *, is_sse: bool) -> None:
        told = error if isinstance(error, SpeechError) else internal_error()
        trace = None if told is error else error
        logger.error("Speech failed after its audio had begun: %s", told.code, exc_info=trace)
        self._account.fail(told)
        if is_sse:
            await self._body(_event({"type": "speech.audio.error", **envelope(told)}))
        # Not completed: the server closes the connection without the final chunk.

    async def _start(self, headers: dict[str, str]) -> None:
        raw = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        message = {"type": "http.response.body", "body": data, "more_body": more}
        await send_or_give_up(self._send, message, self._services.settings.stall_timeout)


def _headers(speech: Speech) -> dict[str, str]:
    is_sse = speech.plan.request.stream_format == "sse"
    return {
        "content-type": "text/event-stream" if is_sse else speech.content_type,
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-engine": speech.engine,
        "x-seed": str(speech.seed),
        "x-text-dropped": str(num_dropped(speech.reading)),
    }


def _event(data: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _delta(data: bytes) -> bytes:
    audio = base64.b64encode(data).decode("ascii")
    return _event({"type": "speech.audio.delta", "audio": audio})


def _done(speech: Speech) -> bytes:
    usage = speech.usage
    return _event(
        {
            "type": "speech.audio.done",
            "usage": {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
            },
        }
    )


def speech_routes(services: Services) -> APIRouter:
    router = APIRouter(tags=["speech"])

    async def create_speech() -> Response:
        """Speak a text. The answer is audio, or server-sent events that carry it."""
        return SpeechResponse(services)

    body = described_body(documented_fields(services.settings.max_input))
    for path in ("/v1/audio/speech", "/audio/speech"):
        router.add_api_route(
            path,
            create_speech,
            methods=["POST"],
            openapi_extra=body,
            response_class=Response,
            responses=described_answer(*CONTENT_TYPES.values(), "text/event-stream"),
            include_in_schema=path.startswith("/v1"),
        )
    return router
