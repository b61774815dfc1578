"""The built-in voices: their names, and the data file of their vectors.

A vector is drawn with a fixed seed, so its timbre is chance: gender and language say how the
built-in espeak voice reads under this name, and what the name leads one to expect.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from chattts_api.types import Voice
from chattts_api.voices.codes import decode_speaker, encode_speaker
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.names import fold_name

Gender = Literal["female", "male", "neutral"]

DATA_FILE: Final = Path(__file__).parent / "data" / "builtin.json"
_ATTRIBUTION: Final = (
    "Vectors drawn from the speaker statistics of 2Noise/ChatTTS, CC BY-NC 4.0, by 2noise."
)


@dataclass(frozen=True, slots=True)
class BuiltinVoice:
    """What a built-in voice is made from."""

    id: str
    name: str
    gender: Gender
    language: Literal["zh", "en"]
    description: str
    seed: int


OPENAI_VOICES: Final = (
    BuiltinVoice("alloy", "alloy", "neutral", "en", "OpenAI name; the default voice", 1001),
    BuiltinVoice("ash", "ash", "male", "en", "OpenAI name", 1002),
    BuiltinVoice("ballad", "ballad", "male", "en", "OpenAI name", 1003),
    BuiltinVoice("coral", "coral", "female", "en", "OpenAI name", 1004),
    BuiltinVoice("echo", "echo", "male", "en", "OpenAI name", 1005),
    BuiltinVoice("fable", "fable", "neutral", "en", "OpenAI name", 1006),
    BuiltinVoice("onyx", "onyx", "male", "en", "OpenAI name", 1007),
    BuiltinVoice("nova", "nova", "female", "en", "OpenAI name", 1008),
    BuiltinVoice("sage", "sage", "female", "en", "OpenAI name", 1009),
    BuiltinVoice("shimmer", "shimmer", "female", "en", "OpenAI name", 1010),
    BuiltinVoice("verse", "verse", "male", "en", "OpenAI name", 1011),
    BuiltinVoice("marin", "marin", "female", "en", "OpenAI name", 1012),
    BuiltinVoice("cedar", "cedar", "male", "en", "OpenAI name", 1013),
)
OWN_VOICES: Final = (
    BuiltinVoice("qinghe", "清荷", "female", "zh", "中文女声 / Chinese", 2001),
    BuiltinVoice("xiaoman", "小满", "female", "zh", "中文女声 / Chinese", 2002),
    BuiltinVoice("ruoxi", "若溪", "female", "zh", "中文女声 / Chinese", 2003),
    BuiltinVoice("mowen", "墨文", "male", "zh", "中文男声 / Chinese", 2004),
    BuiltinVoice("jianxing", "健行", "male", "zh", "中文男声 / Chinese", 2005),
    BuiltinVoice("chenguang", "晨光", "male", "zh", "中文男声 / Chinese", 2006),
    BuiltinVoice("anran", "安然", "neutral", "zh", "中文声音 / Chinese", 2007),
)
BUILTIN_VOICES: Final = OPENAI_VOICES + OWN_VOICES
DEFAULT_VOICE: Final = "alloy"


@cache
def builtin_voices() -> dict[str, Voice]:
    """The built-in voices by id, in the order in which they are listed.

    Raises:
        InvalidSpeakerError: the data file was changed.
    """
    codes = json.loads(DATA_FILE.read_text(encoding="utf-8"))["speakers"]
    return {
        voice.id: Voice(
            id=voice.id,
            name=voice.name,
            speaker=decode_speaker(codes[voice.id]),
            gender=voice.gender,
            language=voice.language,
            description=voice.description,
        )
        for voice in BUILTIN_VOICES
    }


@cache
def builtin_names() -> frozenset[str]:
    """Every folded id and name that means a built-in voice."""
    return frozenset(fold_name(word) for voice in BUILTIN_VOICES for word in (voice.id, voice.name))


def render(voices: Iterable[BuiltinVoice] = BUILTIN_VOICES) -> str:
    """The text of the data file: a speaker code for each voice."""
    speakers = {voice.id: encode_speaker(sample_speaker(voice.seed)) for voice in voices}
    document = {"attribution": _ATTRIBUTION, "speakers": speakers}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
