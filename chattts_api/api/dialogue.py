"""POST /v1/audio/dialogue: several speakers in one streamed file, with subtitles if asked."""

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from fastapi import APIRouter
from pydantic import ValidationError
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
from chattts_api.api.dialogue_fields import DialogueFields, MusicFields
from chattts_api.api.errors import envelope, internal_error
from chattts_api.api.guard.caller import Caller, caller_of, request_id_of
from chattts_api.api.metrics import Account
from chattts_api.api.openapi import described_body
from chattts_api.api.services import Services
from chattts_api.audio.decoding import MAX_UPLOAD_BYTES, DecodeLimits, decode_audio
from chattts_api.audio.encoder import Encoder, open_encoder
from chattts_api.dialogue.captions import captions
from chattts_api.dialogue.conversation import PlannedTurn, SpokenTurn
from chattts_api.dialogue.episode import Background, Episode, plan_turns
from chattts_api.dialogue.music import MusicLevels
from chattts_api.dialogue.script import Turn, parse_script, script_of_rows
from chattts_api.errors import InvalidRequestError, SpeechError
from chattts_api.request import DEFAULTS, invalid_field
from chattts_api.synthesis import Plan, Speech

logger = logging.getLogger(__name__)

MUSIC_LIMITS: Final = DecodeLimits(min_s=1.0, max_s=300.0)
_COMMON: Final = ("model", "voice", "speed", "lang", "normalize", "lexicon", "seed")


def dialogue_routes(services: Services) -> APIRouter:
    router = APIRouter(tags=["dialogue"])

    async def create_dialogue() -> Response:
        """Speak a script. The answer is audio, or events that carry it and its subtitles."""
        return DialogueResponse(services)

    body = described_body(DialogueFields)
    for prefix in ("/v1", ""):
        router.add_api_route(
            f"{prefix}/audio/dialogue",
            create_dialogue,
            methods=["POST"],
            openapi_extra=body,
            response_class=Response,
            include_in_schema=bool(prefix),
        )
    return router


class DialogueResponse(Response):
    """The whole life of one dialogue, from its body to its last byte."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self._services
        with services.metrics.request("dialogue") as account, services.admission.inside():
            asked = await read_json_object(Request(scope, receive))
            answer = _Answer(services, account, scope, send)
            try:
                await run_while_connected(receive, answer.run(asked))
            except ClientGoneError:
                account.cancel()
                break_off(scope)


class _Answer:
    """Speaks one dialogue to one client."""

    def __init__(self, services: Services, account: Account, scope: Scope, send: Send) -> None:
        self._services = services
        self._account = account
        self._scope = scope
        self._send = send

    async def run(self, asked: dict[str, object]) -> None:
        """Raises SpeechError while nothing has been sent; after that the connection breaks."""
        fields = _parsed(asked)
        caller = caller_of(self._scope)
        turns = await self._planned(fields, asked, caller)
        episode = Episode(self._begin, turns, await _background(fields.music))
        encoder = open_encoder(fields.response_format, sample_rate=fields.sample_rate)
        stream = _encoded(episode, encoder)
        async with aclosing(stream) as pieces:
            first = await anext(pieces)
            content_type = "text/event-stream" if fields.is_sse else encoder.content_type
            await self._start(content_type, episode.conversation.engine)
            await self._send_all(fields, episode, first, pieces)

    async def _begin(self, plan: Plan) -> Speech:
        return await self._services.admission.begin(self._services.synthesis, plan)

    async def _planned(
        self, fields: DialogueFields, asked: dict[str, object], caller: Caller
    ) -> tuple[PlannedTurn, ...]:
        services = self._services
        turns = _turns(fields)
        common = {k: asked[k] for k in _COMMON if asked.get(k) is not None}

        def plan(turn: Turn) -> Plan:
            given = {**common, **fields.roles.get(turn.role, {}), "input": turn.text}
            request_id = request_id_of(self._scope)
            request = services.parse(given, caller, request_id, DEFAULTS)
            return services.synthesis.plan(request)

        with services.admission.reading():
            await services.limits.charge_characters(caller, sum(len(t.text) for t in turns))
            return await asyncio.to_thread(plan_turns, turns, plan, gap_s=fields.gap)

    async def _send_all(
        self,
        fields: DialogueFields,
        episode: Episode,
        first: bytes,
        pieces: AsyncIterator[bytes],
    ) -> None:
        teller = _Teller(fields, episode)
        try:
            await self._body(teller.sound(first))
            async for data in pieces:
                await self._body(teller.sound(data))
        except ClientGoneError:
            raise
        except Exception as error:  # the edge: this can only be told by breaking off
            told = error if isinstance(error, SpeechError) else internal_error()
            logger.exception("A dialogue failed after its audio had begun: %s", told.code)
            self._account.fail(told)
            if fields.is_sse:
                await self._body(_event({"type": "speech.audio.error", **envelope(told)}))
            return
        await self._body(teller.end(), more=False)
        self._account.spoken(episode.conversation.seconds, 0)

    async def _start(self, content_type: str, engine: str) -> None:
        headers = {
            "content-type": content_type,
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            "x-engine": engine,
        }
        self._account.first_audio()
        raw = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        if data or not more:
            message = {"type": "http.response.body", "body": data, "more_body": more}
            await send_or_give_up(self._send, message, self._services.settings.stall_timeout)


class _Teller:
    """What is sent: bare sound, or events with sound, turns and subtitles."""

    def __init__(self, fields: DialogueFields, episode: Episode) -> None:
        self._fields = fields
        self._episode = episode
        self._num_told = 0

    def sound(self, data: bytes) -> bytes:
        if not self._fields.is_sse:
            return data
        audio = base64.b64encode(data).decode("ascii")
        return self._turns() + _event({"type": "speech.audio.delta", "audio": audio})

    def end(self) -> bytes:
        if not self._fields.is_sse:
            return b""
        events = self._turns()
        if self._fields.subtitles != "none":
            text = captions(self._episode.spoken, self._fields.subtitles)
            kind = self._fields.subtitles
            events += _event(
                {"type": "dialogue.subtitles", "format": kind, "text": text, "estimated": True}
            )
        seconds = round(self._episode.conversation.seconds, 3)
        return events + _event({"type": "speech.audio.done", "seconds": seconds})

    def _turns(self) -> bytes:
        new = self._episode.spoken[self._num_told :]
        self._num_told += len(new)
        return b"".join(_event(_told(turn)) for turn in new)


def _told(turn: SpokenTurn) -> dict[str, object]:
    return {
        "type": "dialogue.turn",
        "index": turn.index,
        "role": turn.role,
        "start": round(turn.start_s, 3),
        "end": round(turn.end_s, 3),
    }


def _event(data: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def _parsed(asked: dict[str, object]) -> DialogueFields:
    given = {name: value for name, value in asked.items() if value is not None}
    try:
        return DialogueFields.model_validate(given)
    except ValidationError as error:
        raise invalid_field(DialogueFields, error) from None


def _turns(fields: DialogueFields) -> tuple[Turn, ...]:
    if (fields.script is None) == (fields.turns is None):
        raise InvalidRequestError("Give either script or turns.", param="script")
    if fields.script is not None:
        return parse_script(fields.script)
    return script_of_rows([(t.role, t.text, t.pause) for t in fields.turns or ()])


async def _background(music: MusicFields | None) -> Background | None:
    if music is None:
        return None
    if len(music.data) > MAX_UPLOAD_BYTES * 4 // 3 + 4:
        raise InvalidRequestError("music is too large.", param="music")
    try:
        data = base64.b64decode(music.data.encode("ascii", "replace"), validate=True)
    except binascii.Error:
        raise InvalidRequestError("music.data is not base64.", param="music") from None
    samples = await decode_audio(data, MUSIC_LIMITS, param="music")
    return Background(samples, MusicLevels(music.level_db, music.duck_db))


async def _encoded(episode: Episode, encoder: Encoder) -> AsyncGenerator[bytes]:
    """The body, from one encoder; nothing empty."""
    async with aclosing(aiter(episode)) as pieces:
        async for samples in pieces:
            if data := encoder.encode(samples):
                yield data
    if data := encoder.finish():
        yield data
