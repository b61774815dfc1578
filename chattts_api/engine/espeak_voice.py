"""Which of espeak-ng's voices speaks for whom."""

import hashlib
from dataclasses import dataclass

from chattts_api.types import Voice

VARIANTS = {
    "female": ("f1", "f2", "f3", "f4", "f5"),
    "male": ("m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"),
}
ENGLISH = ("en-us", "en")  # American and British
WORDS_PER_MINUTE = {"zh": 205, "en": 170}  # about 5 Han characters, or 14 letters, a second
PACE_STEP = 0.06  # of a `[speed_N]`, around 5
PITCHES = range(38, 63)


@dataclass(frozen=True, slots=True)
class EspeakVoice:
    """How a voice sounds, in espeak-ng's terms: a variant, an accent, a pitch and a pace."""

    variant: str
    accent: str
    pitch: int
    pace: float

    def name(self, language: str) -> str:
        return f"{'cmn' if language == 'zh' else self.accent}+{self.variant}"

    def rate(self, language: str) -> int:
        return round(WORDS_PER_MINUTE[language] * self.pace)


def espeak_voice(voice: Voice, speed_token: int) -> EspeakVoice:
    """Voices differ by their id: the same one always sounds the same."""
    draw = hashlib.sha256(voice.id.encode()).digest()
    gender = ("female", "male")[draw[0] % 2] if voice.gender == "neutral" else voice.gender
    variants = VARIANTS[gender]
    return EspeakVoice(
        variant=variants[draw[1] % len(variants)],
        accent=ENGLISH[draw[2] % len(ENGLISH)],
        pitch=PITCHES[draw[3] % len(PITCHES)],
        pace=1 + (speed_token - 5) * PACE_STEP,
    )
