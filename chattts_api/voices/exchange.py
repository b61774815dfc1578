"""Voices as files that people exchange: recognised by what they hold, not by their names."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, get_args

from chattts_api.errors import (
    ContentTooLargeError,
    InvalidRequestError,
    InvalidSpeakerError,
    UnsupportedMediaTypeError,
)
from chattts_api.types import SamplePrompt, Voice
from chattts_api.voices.codes import decode_sample, decode_speaker, encode_sample, encode_speaker
from chattts_api.voices.vector import SpeakerVector, as_speaker
from chattts_api.voices.vectors_io import (
    NPY_MAGIC,
    csv_bytes,
    npy_bytes,
    read_csv,
    read_npy,
    read_safetensors,
    safetensors_bytes,
)

ExportFormat = Literal["code", "json", "npy", "csv", "safetensors"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
MAX_FILE_BYTES: Final = 256 * 1024

_KIND = "chattts-voice"
_VECTOR_KEYS = ("speaker", "spk_emb", "embedding", "tensor", "vector")
_TORCH_MAGICS = (b"PK\x03\x04", *(bytes([0x80, version]) for version in range(2, 6)))


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A voice as bytes, with what a download needs to know."""

    data: bytes
    media_type: str
    suffix: str


def import_voice(data: bytes, name: str = "") -> Voice:
    """The voice of a file: a speaker code, .npy, CSV, safetensors or JSON.

    Args:
        data: the file's bytes.
        name: what to call it where the file does not say.

    Raises:
        ContentTooLargeError: more than 256 KiB.
        UnsupportedMediaTypeError: a .pt file, which is converted offline.
        InvalidSpeakerError: none of the formats, or not a voice.
    """
    if len(data) > MAX_FILE_BYTES:
        raise ContentTooLargeError(
            f"A voice file has at most {MAX_FILE_BYTES // 1024} KiB.", param="file"
        )
    if data.startswith(NPY_MAGIC):
        return _voice(name, read_npy(data))
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") < MAX_FILE_BYTES:
        return _voice(name, read_safetensors(data))
    if data.startswith(_TORCH_MAGICS):
        raise UnsupportedMediaTypeError(
            "PyTorch files are not read over the network: convert the file with "
            "`python -m chattts_api voices import FILE.pt`.",
            param="file",
        )
    return _import_text(data, name)


def export_voice(voice: Voice, file_format: ExportFormat) -> ExportedFile:
    """The voice as a file; JSON carries everything, the others the speaker alone.

    Raises:
        InvalidRequestError: another format, or a voice without what the format carries.
    """
    if file_format == "json":
        text = json.dumps(_document(voice), ensure_ascii=False, indent=1)
        return ExportedFile((text + "\n").encode(), "application/json", ".json")
    if file_format not in EXPORT_FORMATS:
        raise InvalidRequestError(f"format is one of {', '.join(EXPORT_FORMATS)}.", param="format")
    if voice.speaker is None:
        raise InvalidRequestError(
            "This voice is a sample without a speaker vector: export it as json.", param="format"
        )
    if file_format == "code":
        code = encode_speaker(voice.speaker) + "\n"
        return ExportedFile(code.encode(), "text/plain; charset=utf-8", ".txt")
    if file_format == "csv":
        return ExportedFile(csv_bytes(voice.speaker), "text/csv; charset=utf-8", ".csv")
    data = npy_bytes(voice.speaker) if file_format == "npy" else safetensors_bytes(voice.speaker)
    return ExportedFile(data, "application/octet-stream", f".{file_format}")


def _voice(name: str, speaker: SpeakerVector) -> Voice:
    return Voice(id="", name=name, speaker=speaker)


def _import_text(data: bytes, name: str) -> Voice:
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidSpeakerError(
            "The file is none of: speaker code, .npy, CSV, safetensors, JSON.", param="file"
        ) from error
    if text.startswith("{") or (text.startswith("[") and text.endswith("]")):
        return _import_json(text, name)
    if text[:1].isascii():
        return _voice(name, read_csv(text))
    return _voice(name, decode_speaker(text))


def _import_json(text: str, name: str) -> Voice:
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidSpeakerError("Not a sound JSON file.", param="file") from error
    if isinstance(document, list):
        return _voice(name, as_speaker(document))
    speaker = next((document[key] for key in _VECTOR_KEYS if document.get(key) is not None), None)
    sample = document.get("sample")
    if speaker is None and sample is None:
        raise InvalidSpeakerError(
            f"The JSON file needs one of {', '.join(_VECTOR_KEYS)}, sample.", param="file"
        )
    return Voice(
        id="",
        name=_text(document, "name") or name,
        speaker=None if speaker is None else _json_speaker(speaker),
        sample=None if sample is None else _json_sample(sample),
        gender=_json_gender(document),
        language=_text(document, "language") or "zh",
        description=_text(document, "description"),
    )


def _json_speaker(value: object) -> SpeakerVector:
    if isinstance(value, str):
        return decode_speaker(value.strip())
    if isinstance(value, list):
        return as_speaker(value)
    raise InvalidSpeakerError("A speaker in JSON is a code or a list of numbers.", param="file")


def _json_sample(value: object) -> SamplePrompt:
    if not isinstance(value, dict) or not isinstance(value.get("code"), str):
        raise InvalidSpeakerError(
            'A sample in JSON is {"code": sample code, "text": transcript}.', param="file"
        )
    return SamplePrompt(decode_sample(value["code"].strip()), _text(value, "text"))


def _json_gender(document: dict[str, Any]) -> Literal["female", "male", "neutral"]:
    gender = _text(document, "gender")
    if gender == "female":
        return "female"
    return "male" if gender == "male" else "neutral"


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _document(voice: Voice) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": _KIND,
        "name": voice.name,
        "gender": voice.gender,
        "language": voice.language,
        "description": voice.description,
        "speaker": None if voice.speaker is None else encode_speaker(voice.speaker),
    }
    if voice.sample is not None:
        document["sample"] = {"code": encode_sample(voice.sample.codes), "text": voice.sample.text}
    return document
