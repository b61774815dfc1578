"""The fields of a speech request, checked once for HTTP, sockets, command line and page.

`parse_request` turns any mapping into a `SpeechRequest` or raises a typed error that names the
field at fault. Messages never hold the caller's values.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from chattts_api.errors import InputTooLongError, InvalidRequestError, ModelNotFoundError
from chattts_api.types import AudioFormat, Language, SamplingParams, SpeechRequest, Style, Voice

KNOWN_MODELS = ("chattts", "tts-1", "tts-1-hd", "gpt-4o-mini-tts")
DEFAULT_MODEL = "chattts"
DEFAULT_VOICE = "alloy"
MAX_INPUT = 4096
MAX_LEXICON = 200
MAX_SEED = 2**63 - 1
NO_DEFAULTS: Mapping[str, object] = MappingProxyType({})
DEFAULTS: Mapping[str, object] = MappingProxyType({"model": DEFAULT_MODEL, "voice": DEFAULT_VOICE})
"""Of the surfaces on which only the text is required."""

_CONFIG = ConfigDict(
    strict=True, extra="ignore", allow_inf_nan=False, frozen=True, hide_input_in_errors=True
)
_Word = Annotated[str, Field(min_length=1, max_length=200)]


class _VoiceId(BaseModel):
    model_config = _CONFIG

    id: str = Field(min_length=1)


class SpeechFields(BaseModel):
    """The JSON of `POST /v1/audio/speech`. null is the same as leaving a field out."""

    model_config = _CONFIG

    model: str = Field(max_length=256, description="a string of at most 256 characters")
    input: str = Field(description="a string")
    voice: str | _VoiceId = Field(description='a string or {"id": string}')
    response_format: AudioFormat = Field("mp3", description="one of mp3, opus, aac, flac, wav, pcm")
    speed: float = Field(1.0, ge=0.25, le=4.0, description="a number from 0.25 to 4.0")
    stream_format: Literal["audio", "sse"] = Field("audio", description="audio or sse")
    stream: bool = Field(default=True, description="true or false")
    instructions: str | None = Field(
        None, max_length=4096, description="a string of at most 4096 characters"
    )
    seed: int | None = Field(
        None, ge=0, le=MAX_SEED, description="a whole number from 0 to 2^63 - 1"
    )
    temperature: float = Field(0.3, ge=0, le=2, description="a number from 0 to 2")
    top_p: float = Field(0.7, gt=0, le=1, description="a number above 0 and at most 1")
    top_k: int = Field(20, ge=1, le=626, description="a whole number from 1 to 626")
    repetition_penalty: float = Field(1.05, ge=1, le=2, description="a number from 1 to 2")
    speed_token: int = Field(5, ge=0, le=9, description="a whole number from 0 to 9")
    refine: bool = Field(default=False, description="true or false")
    oral: int | None = Field(None, ge=0, le=9, description="a whole number from 0 to 9, or null")
    laugh: int | None = Field(None, ge=0, le=2, description="a whole number from 0 to 2, or null")
    break_: int | None = Field(
        None, alias="break", ge=0, le=7, description="a whole number from 0 to 7, or null"
    )
    lang: Language = Field("auto", description="one of auto, zh, en")
    normalize: bool = Field(default=True, description="true or false")
    lexicon: dict[_Word, Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict,
        max_length=MAX_LEXICON,
        description="an object of at most 200 strings, written form to spoken form",
    )
    sample_rate: Literal[8000, 16000, 22050, 24000, 44100, 48000] = Field(
        24000, description="one of 8000, 16000, 22050, 24000, 44100, 48000"
    )


class Voices(Protocol):
    """The catalogue, as far as a request needs it."""

    def resolve(self, voice: str | Mapping[str, object], owner: str | None = None) -> Voice: ...


class RequestSettings(Protocol):
    """The settings, as far as a request needs them."""

    @property
    def max_input(self) -> int: ...
    @property
    def strict_models(self) -> bool: ...


def parse_request(
    fields: Mapping[str, object],
    *,
    catalog: Voices,
    settings: RequestSettings,
    request_id: str,
    owner: str | None = None,
    defaults: Mapping[str, object] = NO_DEFAULTS,
) -> SpeechRequest:
    """Check a request's fields and look its voice up, as `owner` sees the voices.

    Raises:
        InvalidRequestError, InputTooLongError: a field is missing, of the wrong type or range.
        ModelNotFoundError: the model is unknown and settings.strict_models is on.
        VoiceNotFoundError, InvalidSpeakerError: from the catalogue.
    """
    parsed = _validate(fields, defaults)
    if len(parsed.input) > settings.max_input:
        raise InputTooLongError(
            f"input must not be longer than {settings.max_input} characters.", param="input"
        )
    if settings.strict_models and parsed.model not in KNOWN_MODELS:
        raise ModelNotFoundError(
            f"No such model. There are: {', '.join(KNOWN_MODELS)}.", param="model"
        )
    name = parsed.voice if isinstance(parsed.voice, str) else parsed.voice.id
    return _assembled(parsed, catalog.resolve(name, owner), request_id)


def _validate(fields: Mapping[str, object], defaults: Mapping[str, object]) -> SpeechFields:
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return SpeechFields.model_validate({**defaults, **given})
    except ValidationError as error:
        raise invalid_field(SpeechFields, error) from None


def invalid_field(model: type[BaseModel], error: ValidationError) -> InvalidRequestError:
    """The first complaint of a validation, told by the field's own description."""
    details: ErrorDetails = error.errors(include_url=False, include_input=False)[0]
    name = str(details["loc"][0]) if details["loc"] else ""
    by_alias = {f.alias or n: f for n, f in model.model_fields.items()}
    if name not in by_alias:
        return InvalidRequestError("The request is not an object of known fields.")
    if details["type"] == "missing" and len(details["loc"]) == 1:
        return InvalidRequestError(f"{name} is required.", param=name)
    must_be = f"{name} must be {by_alias[name].description}."
    if details["type"] == "string_too_long" and len(details["loc"]) == 1:
        return InputTooLongError(must_be, param=name)
    return InvalidRequestError(must_be, param=name)


def _assembled(parsed: SpeechFields, voice: Voice, request_id: str) -> SpeechRequest:
    return SpeechRequest(
        input=parsed.input,
        voice=voice,
        request_id=request_id,
        model=parsed.model,
        response_format=parsed.response_format,
        speed=parsed.speed,
        stream_format=parsed.stream_format,
        stream=parsed.stream,
        instructions=parsed.instructions,
        seed=parsed.seed,
        sampling=SamplingParams(
            temperature=parsed.temperature,
            top_p=parsed.top_p,
            top_k=parsed.top_k,
            repetition_penalty=parsed.repetition_penalty,
        ),
        style=Style(
            speed_token=parsed.speed_token,
            refine=parsed.refine,
            oral=parsed.oral,
            laugh=parsed.laugh,
            break_=parsed.break_,
        ),
        lang=parsed.lang,
        normalize=parsed.normalize,
        lexicon=parsed.lexicon,
        sample_rate=parsed.sample_rate,
    )


def documented_fields(max_input: int) -> type[SpeechFields]:
    """The fields with the length that this server takes, for the OpenAPI document."""
    return create_model(
        "CreateSpeechRequest",
        __base__=SpeechFields,
        input=(str, Field(min_length=1, max_length=max_input, description="what to say")),
    )
