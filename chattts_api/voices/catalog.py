"""Every voice a request can name: built-in, saved, drawn from a seed, given as a code."""

import hashlib
import re
from collections.abc import Mapping

from chattts_api.errors import InvalidRequestError, InvalidSpeakerError, VoiceNotFoundError
from chattts_api.types import Voice
from chattts_api.voices import base16384
from chattts_api.voices.builtin import builtin_voices
from chattts_api.voices.codes import MAX_CODE_CHARACTERS, decode_speaker
from chattts_api.voices.generator import MAX_SEED, sample_speaker
from chattts_api.voices.names import fold_name
from chattts_api.voices.store import VoiceStore

_SEED = re.compile(r"seed:([0-9]{1,19})", re.ASCII | re.IGNORECASE)
# Longer than any name, shorter than any code of 768 values.
_MIN_CODE_CHARACTERS = 65
_TRAILER_BLOCK = re.compile("[\u3d00-\u3dff]\\Z")


class VoiceCatalog:
    """Looks voices up; knows nothing of engines. Safe to call from any thread.

    Args:
        store: the saved voices, or None where none are kept.
    """

    def __init__(self, store: VoiceStore | None = None) -> None:
        self._store = store
        self._builtin = builtin_voices()
        self._by_name = {fold_name(v.name): v for v in self._builtin.values()} | {
            fold_name(v.id): v for v in self._builtin.values()
        }

    def list(self, owner: str | None = None) -> list[Voice]:
        """The built-in voices, then the saved ones that this owner may use."""
        saved = self._store.list(owner) if self._store is not None else []
        return [*self._builtin.values(), *saved]

    def resolve(self, voice: str | Mapping[str, object], owner: str | None = None) -> Voice:
        """The voice of a request's `voice` field.

        A built-in id or name (in any case), a saved id or name of this owner, `seed:N`, or a
        speaker code; each also as `{"id": ...}`.

        Raises:
            VoiceNotFoundError: nothing of that name for this owner.
            InvalidSpeakerError: it looks like a speaker code and is none.
            InvalidRequestError: neither a string nor an object with an id.
        """
        text = _voice_text(voice)
        found = self._by_name.get(fold_name(text)) or self._saved(text, owner)
        if found is not None:
            return found
        if text[:5].lower() == "seed:":
            return _seed_voice(text)
        if _looks_like_code(text):
            return _code_voice(text)
        raise VoiceNotFoundError(self._not_found(), param="voice")

    def _saved(self, text: str, owner: str | None) -> Voice | None:
        return self._store.find(text, owner) if self._store is not None else None

    def _not_found(self) -> str:
        return (
            "No such voice. GET /v1/audio/voices lists those there are; built-in: "
            f"{', '.join(self._builtin)}. `seed:N` and speaker codes are voices too."
        )


def _voice_text(voice: str | Mapping[str, object]) -> str:
    text = voice.get("id") if isinstance(voice, Mapping) else voice
    if not isinstance(text, str):
        raise InvalidRequestError('voice must be a string or {"id": string}.', param="voice")
    text = text.strip()
    if len(text) > MAX_CODE_CHARACTERS:
        raise InvalidSpeakerError(
            f"voice must not be longer than {MAX_CODE_CHARACTERS} characters.", param="voice"
        )
    return text


def _seed_voice(text: str) -> Voice:
    match = _SEED.fullmatch(text)
    if match is None or int(match[1]) > MAX_SEED:
        raise VoiceNotFoundError("`seed:N` takes a whole number from 0 to 2^63 - 1.", param="voice")
    name = f"seed:{int(match[1])}"
    return Voice(id=name, name=name, speaker=sample_speaker(int(match[1])))


def _looks_like_code(text: str) -> bool:
    if _TRAILER_BLOCK.search(text):
        return True
    return len(text) >= _MIN_CODE_CHARACTERS and base16384.is_alphabet(text[:_MIN_CODE_CHARACTERS])


def _code_voice(text: str) -> Voice:
    speaker = decode_speaker(text)
    digest = hashlib.sha256(speaker.tobytes()).hexdigest()[:16]
    return Voice(id=f"code:{digest}", name="speaker code", speaker=speaker)
