"""Saved voices: made from a code, a file, a seed, a mix or a sample; listed, exported, deleted."""

import asyncio
import base64
import binascii
from dataclasses import replace
from typing import Annotated, Final, Literal, Protocol

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from chattts_api.api.body import read_json_object
from chattts_api.api.catalog import voice_entry
from chattts_api.api.guard.caller import caller_of
from chattts_api.api.services import Services
from chattts_api.audio.decoding import MAX_UPLOAD_BYTES, DecodeLimits, decode_audio
from chattts_api.errors import ForbiddenError, InvalidRequestError, NotFoundError
from chattts_api.request import invalid_field
from chattts_api.types import Samples, Voice
from chattts_api.voices.exchange import (
    EXPORT_FORMATS,
    MAX_FILE_BYTES,
    export_voice,
    import_voice,
)
from chattts_api.voices.mixing import MAX_MIXED, mix_speakers
from chattts_api.voices.record import StoredVoice
from chattts_api.voices.store import VoiceStore

SAMPLE_LIMITS: Final = DecodeLimits(min_s=3.0, max_s=15.0)
_CONFIG: Final = ConfigDict(
    strict=True, extra="ignore", allow_inf_nan=False, frozen=True, hide_input_in_errors=True
)
_SOURCES: Final = ("code", "file", "seed", "mix", "sample")


class VoiceCloner(Protocol):
    """Makes a voice of a recording; only an engine that has the model's encoder can."""

    async def clone(self, samples: Samples, transcript: str) -> Voice:
        """Samples are mono, 24 kHz. Raises InvalidAudioError."""


class _MixPart(BaseModel):
    model_config = _CONFIG

    voice: str = Field(min_length=1)
    weight: float = Field(1.0, ge=0)


class VoiceFields(BaseModel):
    """What `POST /v1/audio/voices` takes; exactly one of the sources."""

    model_config = _CONFIG

    name: str = Field(description="a string")
    gender: Literal["female", "male", "neutral"] = Field(
        "neutral", description="one of female, male, neutral"
    )
    language: str = Field("zh", max_length=32, description="a tag such as zh or en")
    description: str = Field("", max_length=500, description="a string of at most 500 characters")
    code: str | None = Field(None, description="a speaker code")
    file: bytes | None = Field(
        None, description="a voice file in base64: .npy, CSV, safetensors, JSON or a code"
    )
    seed: int | None = Field(
        None, ge=0, le=2**63 - 1, description="a whole number from 0 to 2^63 - 1"
    )
    mix: Annotated[list[_MixPart], Field(min_length=2, max_length=MAX_MIXED)] | None = Field(
        None, description=f'a list of 2 to {MAX_MIXED} objects {{"voice", "weight"}}'
    )
    sample: bytes | None = Field(None, description="a recording of 3 to 15 s in base64")
    transcript: str = Field("", max_length=1000, description="what the sample says")
    consent: bool = Field(default=False, description="true or false")


def voice_routes(
    services: Services, store: VoiceStore, cloner: VoiceCloner | None = None
) -> APIRouter:
    """Routes over a store. Without a cloner, samples are refused."""
    router = APIRouter(tags=["voices"])
    desk = _VoiceDesk(services, store, cloner)

    async def create_voice(request: Request) -> Response:
        """Save a voice of this caller."""
        owner = caller_of(request.scope).owner
        stored = await desk.create(await _fields(request), owner)
        return JSONResponse(stored_entry(stored))

    async def get_voice(request: Request, voice_id: str) -> Response:
        """A saved voice; with `?format=` as a file."""
        stored = store.get(voice_id, caller_of(request.scope).owner)
        asked = request.query_params.get("format")
        return JSONResponse(stored_entry(stored)) if asked is None else _file(stored, asked)

    async def delete_voice(request: Request, voice_id: str) -> Response:
        await asyncio.to_thread(store.delete, voice_id, caller_of(request.scope).owner)
        return JSONResponse({"id": voice_id, "object": "audio.voice.deleted", "deleted": True})

    for prefix in ("/v1", ""):
        shown = bool(prefix)
        path = f"{prefix}/audio/voices"
        one = f"{path}/{{voice_id}}"
        router.add_api_route(path, create_voice, methods=["POST"], include_in_schema=shown)
        router.add_api_route(one, get_voice, methods=["GET"], include_in_schema=shown)
        router.add_api_route(one, delete_voice, methods=["DELETE"], include_in_schema=shown)
    return router


class _VoiceDesk:
    """Turns fields into a saved voice."""

    def __init__(self, services: Services, store: VoiceStore, cloner: VoiceCloner | None) -> None:
        self._services = services
        self._store = store
        self._cloner = cloner

    async def create(self, fields: VoiceFields, owner: str | None) -> StoredVoice:
        """Raises SpeechError."""
        voice = replace(
            await self._made(fields, owner),
            name=fields.name,
            gender=fields.gender,
            language=fields.language,
            description=fields.description,
        )
        saved = await asyncio.to_thread(self._store.save, voice, owner)
        return self._store.get(saved.id, owner)

    async def _made(self, fields: VoiceFields, owner: str | None) -> Voice:
        given = [name for name in _SOURCES if getattr(fields, name) is not None]
        if len(given) != 1:
            raise InvalidRequestError(f"Give exactly one of {', '.join(_SOURCES)}.", param="code")
        catalog = self._services.catalog
        if fields.seed is not None:
            return catalog.resolve(f"seed:{fields.seed}", owner)
        if fields.code is not None:
            return import_voice(fields.code.strip().encode("utf-8", "replace"))
        if fields.file is not None:
            return import_voice(_unpacked(fields.file, MAX_FILE_BYTES, "file"))
        if fields.mix is not None:
            return self._mixed(fields.mix, owner)
        return await self._cloned(fields)

    def _mixed(self, mix: list[_MixPart], owner: str | None) -> Voice:
        parts = []
        for part in mix:
            speaker = self._services.catalog.resolve(part.voice, owner).speaker
            if speaker is None:
                raise InvalidRequestError(
                    "A voice without a speaker vector cannot be mixed.", param="mix"
                )
            parts.append((speaker, part.weight))
        return Voice(id="", name="", speaker=mix_speakers(parts))

    async def _cloned(self, fields: VoiceFields) -> Voice:
        assert fields.sample is not None
        if self._cloner is None:
            raise InvalidRequestError(
                "This server makes no voices of samples: the ChatTTS model is not loaded.",
                param="sample",
            )
        if not fields.consent:
            raise ForbiddenError(
                "A voice is cloned only with its owner's consent: set consent to true.",
                param="consent",
            )
        if not fields.transcript.strip():
            raise InvalidRequestError("A sample needs its transcript.", param="transcript")
        data = _unpacked(fields.sample, MAX_UPLOAD_BYTES, "sample")
        samples = await decode_audio(data, SAMPLE_LIMITS, param="sample")
        return await self._cloner.clone(samples, fields.transcript.strip())


def stored_entry(stored: StoredVoice) -> dict[str, object]:
    return {
        **voice_entry(stored.voice),
        "created": stored.created,
        "has_sample": stored.voice.sample is not None,
    }


def _file(stored: StoredVoice, asked: str) -> Response:
    known = next((f for f in EXPORT_FORMATS if f == asked), None)
    if known is None:
        raise NotFoundError(f"format is one of {', '.join(EXPORT_FORMATS)}.", param="format")
    exported = export_voice(stored.voice, known)
    name = f"{stored.voice.id}{exported.suffix}"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "x-content-type-options": "nosniff",
    }
    return Response(exported.data, media_type=exported.media_type, headers=headers)


async def _fields(request: Request) -> VoiceFields:
    """The fields of a JSON body or of a form, whose files need no base64."""
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        given = await _form(request)
    else:
        given = {k: v for k, v in (await read_json_object(request)).items() if v is not None}
        for name in ("file", "sample"):
            if isinstance(given.get(name), str):
                given[name] = str(given[name]).encode("ascii", "replace")
    try:
        return VoiceFields.model_validate(given)
    except ValidationError as error:
        raise invalid_field(VoiceFields, error) from None


async def _form(request: Request) -> dict[str, object]:
    given: dict[str, object] = {}
    async with request.form(max_files=2, max_fields=16, max_part_size=64 * 1024) as form:
        for name, value in form.items():
            field = "sample" if name == "audio_sample" else name
            if isinstance(value, UploadFile):
                given[field] = base64.b64encode(await value.read(MAX_UPLOAD_BYTES + 1))
            elif field == "consent":
                given[field] = value.lower() in {"true", "1", "on", "yes"}
            elif field == "seed" and value.isascii() and value.isdigit():
                given[field] = int(value[:30])
            else:
                given[field] = value
    return given


def _unpacked(packed: bytes, max_bytes: int, param: str) -> bytes:
    if len(packed) > max_bytes * 4 // 3 + 4:
        raise InvalidRequestError(f"{param} is too large.", param=param)
    try:
        return base64.b64decode(packed, validate=True)
    except binascii.Error:
        raise InvalidRequestError(f"{param} is not base64.", param=param) from None
