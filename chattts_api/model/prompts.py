"""What a row begins with: the ids of its text, its speaker and its sample. No tensors.

code    [Stts][spk_emb]{transcript of the sample}[speed_N]{text}[Ptts], then the sample's codes
refine  [Sbreak]{text}[Pbreak][oral_N][laugh_N][break_N], those that are given
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chattts_api.errors import InvalidSpeakerError
from chattts_api.model.tokenizer import SpeechTokenizer
from chattts_api.types import Style, Voice


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """The rows of a prompt.

    Attributes:
        ids: the text rows, one id a row.
        speaker: float16 [H] before normalisation, written over `speaker_row`.
        codes: the sample's, uint16 [4, T]; their rows follow the text's.
    """

    ids: tuple[int, ...]
    speaker: npt.NDArray[np.float16] | None = None
    speaker_row: int | None = None
    codes: npt.NDArray[np.uint16] | None = None

    @property
    def num_rows(self) -> int:
        return len(self.ids) + (0 if self.codes is None else self.codes.shape[1])


class PromptBuilder:
    """Builds prompts for a model of one hidden size."""

    def __init__(self, tokenizer: SpeechTokenizer, hidden_size: int) -> None:
        self.tokenizer = tokenizer
        self._hidden_size = hidden_size

    def code(
        self, text: str, voice: Voice, style: Style, refined: Iterable[int] | None = None
    ) -> Prompt:
        """The prompt of speech. `refined` ids stand for the text where the refine pass wrote it."""
        token, encode = self.tokenizer.control, self.tokenizer.encode_text
        sample = voice.sample
        ids = (
            token("[Stts]"),
            token("[empty_spk]" if voice.speaker is None else "[spk_emb]"),
            *(() if sample is None else encode(sample.text)),
            token(f"[speed_{style.speed_token}]"),
            *(encode(text) if refined is None else self.tokenizer.without_control(refined)),
            token("[Ptts]"),
        )
        codes = None if sample is None else sample.codes
        return Prompt(ids, self._fit(voice.speaker), 1, codes)

    def refine(self, text: str, style: Style) -> Prompt:
        """The prompt of the refine pass, which writes until [Ebreak]."""
        token = self.tokenizer.control
        chosen = {"oral": style.oral, "laugh": style.laugh, "break": style.break_}
        return Prompt(
            (
                token("[Sbreak]"),
                *self.tokenizer.encode_text(text),
                token("[Pbreak]"),
                *(token(f"[{name}_{n}]") for name, n in chosen.items() if n is not None),
            )
        )

    def raw(self, prompt: str, voice: Voice) -> Prompt:
        """A whole prompt as it stands; the speaker goes where the prompt has [spk_emb]."""
        ids = tuple(self.tokenizer.encode_raw(prompt))
        place = self.tokenizer.control("[spk_emb]")
        row = ids.index(place) if place in ids else None
        codes = None if voice.sample is None else voice.sample.codes
        return Prompt(ids, self._fit(voice.speaker), row, codes)

    def _fit(self, speaker: npt.NDArray[np.float16] | None) -> npt.NDArray[np.float16] | None:
        # The one place where a full-size speaker meets a smaller model (tests, random weights):
        # it is cut to the model's hidden size.
        if speaker is None or len(speaker) == self._hidden_size:
            return speaker
        if len(speaker) < self._hidden_size:
            raise InvalidSpeakerError(
                f"A speaker of {len(speaker)} numbers does not fit a model of {self._hidden_size}.",
                param="voice",
            )
        return speaker[: self._hidden_size]
