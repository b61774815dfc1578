"""What becomes of a text before it is spoken: normalised, refined, counted."""

import asyncio
from typing import Final, Protocol, runtime_checkable

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from chattts_api.api.body import read_json_object
from chattts_api.api.errors import renamed
from chattts_api.api.guard.caller import caller_of, request_id_of
from chattts_api.api.openapi import described_body
from chattts_api.api.services import Services
from chattts_api.engine.admission import SPEECH_SHARE
from chattts_api.errors import InputTooLongError, SpeechError
from chattts_api.request import DEFAULTS, MAX_LEXICON, invalid_field
from chattts_api.types import STEPS_PER_SECOND, Job, Language, Reading

_CONFIG: Final = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)


@runtime_checkable
class TextRefiner(Protocol):
    """An engine that can write a text anew with the model's own marks of breath and laughter."""

    async def refine(self, job: Job) -> str:
        """The refined text of a job's segments."""


class _TextFields(BaseModel):
    model_config = _CONFIG

    text: str = Field(description="a string")
    lang: Language = Field(default="auto", description="one of auto, zh, en")
    normalize: bool = Field(default=True, description="true or false")
    lexicon: dict[str, str] = Field(
        default_factory=dict,
        max_length=MAX_LEXICON,
        description="an object of at most 200 strings, written form to spoken form",
    )


def text_routes(services: Services) -> APIRouter:
    router = APIRouter(tags=["text"])

    async def normalize(request: Request) -> Response:
        return JSONResponse(reading_report(await _read(services, request)))

    async def tokens(request: Request) -> Response:
        reading = await _read(services, request)
        num_steps = sum(s.max_steps for s in reading.segments) * SPEECH_SHARE
        return JSONResponse(
            {
                "input_tokens": sum(len(s.text) for s in reading.segments),
                "segments": len(reading.segments),
                "estimated_output_tokens": round(num_steps),
                "estimated_seconds": round(num_steps / STEPS_PER_SECOND, 2),
            }
        )

    async def refine(request: Request) -> Response:
        """The model's own pass over the text; the built-in voice has none and changes nothing."""
        asked = await read_json_object(request)
        return await _refined(services, request.scope, asked)

    body = described_body(_TextFields)
    for name, route in (("normalize", normalize), ("refine", refine), ("tokens", tokens)):
        router.add_api_route(f"/v1/text/{name}", route, methods=["POST"], openapi_extra=body)
    return router


async def _read(services: Services, request: Request) -> Reading:
    fields = await read_json_object(request)
    given = {name: value for name, value in fields.items() if value is not None}
    given.setdefault("text", given.get("input"))
    if given["text"] is None:
        del given["text"]
    try:
        asked = _TextFields.model_validate(given)
    except ValidationError as error:
        raise invalid_field(_TextFields, error) from None
    if len(asked.text) > services.settings.max_input:
        raise InputTooLongError(
            f"text must not be longer than {services.settings.max_input} characters.", param="text"
        )
    with services.admission.reading():
        await services.limits.charge_characters(caller_of(request.scope), len(asked.text))
        return await asyncio.to_thread(
            services.synthesis.reader.read,
            asked.text,
            lang=asked.lang,
            normalize=asked.normalize,
            lexicon=asked.lexicon,
        )


async def _refined(services: Services, scope: Scope, asked: dict[str, object]) -> Response:
    """Takes the fields of a speech request; `text` stands for `input`."""
    fields = {**asked, "input": asked.get("text", asked.get("input")), "refine": True}
    caller = caller_of(scope)
    try:
        request = services.parse(fields, caller, request_id_of(scope), DEFAULTS)
        plan = await services.plan(request, caller)
    except SpeechError as error:
        raise renamed(error, "input", "text") from None
    engine: object = services.synthesis.engine
    body: dict[str, object] = {"engine": services.synthesis.engine.name, "seed": plan.job.seed}
    if isinstance(engine, TextRefiner):
        body |= {"text": await engine.refine(plan.job), "refined": True}
    else:
        body |= {"text": plan.reading.spoken, "refined": False}
    return JSONResponse(body)


def reading_report(reading: Reading) -> dict[str, object]:
    """A reading as JSON: what is said, and every change with its place in the input."""
    return {
        "spoken": reading.spoken,
        "segments": [segment.text for segment in reading.segments],
        "dropped": [{"start": d.start, "end": d.end, "text": d.text} for d in reading.dropped],
        "replaced": [
            {"start": r.start, "end": r.end, "written": r.written, "spoken": r.spoken}
            for r in reading.replaced
        ],
        "lang": reading.language,
    }
