"""A saved voice as bytes: one JSON document with a format number and a checksum."""

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from chattts_api.errors import InvalidRequestError, SpeechError
from chattts_api.types import SamplePrompt, Voice
from chattts_api.voices.codes import NUM_CODEBOOKS, as_sample_codes
from chattts_api.voices.names import clean_name
from chattts_api.voices.vector import as_speaker

FORMAT: Final = 1
MAX_RECORD_BYTES: Final = 64 * 1024
MAX_DESCRIPTION_CHARACTERS: Final = 500
MAX_TRANSCRIPT_CHARACTERS: Final = 1_000
ID_PATTERN: Final = re.compile(r"v_[A-Za-z0-9_-]{22}", re.ASCII)

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", re.ASCII)


class CorruptRecordError(ValueError):
    """Not a record, or not the one that was written."""


class UnknownFormatError(ValueError):
    """A record of a format that this version does not know."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredVoice:
    """A saved voice, whose it is (None: everybody's), and when it was saved (Unix seconds)."""

    voice: Voice
    owner: str | None
    created: int


def clean_voice(voice: Voice) -> Voice:
    """The voice as it may be stored.

    Raises:
        InvalidRequestError: a name, gender, language, description or transcript out of bounds.
        InvalidSpeakerError: a vector or sample that is none.
    """
    if voice.speaker is None and voice.sample is None:
        raise InvalidRequestError("A voice needs a speaker or a sample.", param="voice")
    if voice.gender not in {"female", "male", "neutral"}:
        raise InvalidRequestError("gender is female, male or neutral.", param="gender")
    if len(voice.language) > 32 or not _LANGUAGE.fullmatch(voice.language):
        raise InvalidRequestError("language is a tag such as zh or en.", param="language")
    if len(voice.description) > MAX_DESCRIPTION_CHARACTERS:
        raise InvalidRequestError(
            f"A voice's note has at most {MAX_DESCRIPTION_CHARACTERS} characters.",
            param="description",
        )
    return replace(
        voice,
        name=clean_name(voice.name),
        speaker=None if voice.speaker is None else as_speaker(voice.speaker),
        sample=None if voice.sample is None else _clean_sample(voice.sample),
        description=_encodable(voice.description, "description"),
    )


def _clean_sample(sample: SamplePrompt) -> SamplePrompt:
    text = _encodable(sample.text.strip(), "transcript")
    if not 1 <= len(text) <= MAX_TRANSCRIPT_CHARACTERS:
        raise InvalidRequestError(
            f"A sample needs its transcript, 1 to {MAX_TRANSCRIPT_CHARACTERS} characters.",
            param="transcript",
        )
    return SamplePrompt(as_sample_codes(sample.codes), text)


def _encodable(text: str, param: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"{param} holds half a character.", param=param) from error
    return text


def to_bytes(stored: StoredVoice) -> bytes:
    """The document of a cleaned voice."""
    voice, sample = stored.voice, stored.voice.sample
    fields: dict[str, Any] = {
        "format": FORMAT,
        "id": voice.id,
        "owner": stored.owner,
        "created": stored.created,
        "name": voice.name,
        "gender": voice.gender,
        "language": voice.language,
        "description": voice.description,
        "speaker": None if voice.speaker is None else _pack(voice.speaker.astype("<f2")),
        "sample": None
        if sample is None
        else {"codes": _pack(sample.codes.astype("<u2")), "text": sample.text},
    }
    fields["sha256"] = _checksum(fields)
    return (json.dumps(fields, ensure_ascii=False, indent=1) + "\n").encode()


def from_bytes(data: bytes) -> StoredVoice:
    """The voice of a document.

    Raises:
        UnknownFormatError: made by another version.
        CorruptRecordError: anything else that is wrong.
    """
    try:
        fields = json.loads(data)
        version = fields["format"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptRecordError("not a voice document") from error
    if version != FORMAT:
        raise UnknownFormatError(f"format {str(version)[:16]!r}, this version reads {FORMAT}")
    try:
        if fields.pop("sha256") != _checksum(fields):
            raise CorruptRecordError("the checksum does not fit")
        return _from_fields(fields)
    except (KeyError, TypeError, AttributeError, ValueError, SpeechError) as error:
        raise CorruptRecordError(f"not a sound voice document: {error}") from error


def _from_fields(fields: dict[str, Any]) -> StoredVoice:
    speaker, sample = fields["speaker"], fields["sample"]
    voice = Voice(
        id=fields["id"],
        name=fields["name"],
        speaker=None if speaker is None else as_speaker(_unpack(speaker, "<f2")),
        sample=None if sample is None else _sample_from(sample),
        gender=fields["gender"],
        language=fields["language"],
        description=fields["description"],
    )
    if not ID_PATTERN.fullmatch(voice.id):
        raise CorruptRecordError("not an id")
    return StoredVoice(clean_voice(voice), fields["owner"], int(fields["created"]))


def _sample_from(fields: dict[str, Any]) -> SamplePrompt:
    return SamplePrompt(
        as_sample_codes(_unpack(fields["codes"], "<u2").reshape(NUM_CODEBOOKS, -1)),
        fields["text"],
    )


def _pack(values: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _unpack(text: str, dtype: str) -> np.ndarray[Any, Any]:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype)
    except binascii.Error as error:
        raise CorruptRecordError("not base64") from error


def _checksum(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
