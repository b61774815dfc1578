"""Text to ids and back. The official file's truncation, padding and [CLS] ... [SEP] stay off."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from chattts_api.errors import WeightsError
from chattts_api.model.control_tokens import BERT_TOKENS, CONTROL_TOKENS, IN_TEXT_TOKENS


class SpeechTokenizer:
    """ChatTTS's tokenizer: a BERT vocabulary and the control tokens, by name.

    Raises:
        WeightsError: the file cannot be read or lacks a control token.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            raise WeightsError(f"{path} is not a tokenizer: {error}.") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._control = {token: self._find(path, token) for token in CONTROL_TOKENS}
        self._unknown = self._find(path, "[UNK]")
        in_text = {self._control[token] for token in IN_TEXT_TOKENS}
        bert = {self._find(path, token) for token in BERT_TOKENS}
        self._barred = (bert | set(self._control.values())) - in_text

    def _find(self, path: Path, token: str) -> int:
        found: int | None = self._tokenizer.token_to_id(token)
        if found is None:
            raise WeightsError(f"{path} lacks the token {token}.")
        return found

    @property
    def num_ids(self) -> int:
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def control(self, token: str) -> int:
        """The id of a control token."""
        return self._control[token]

    def encode_raw(self, prompt: str) -> list[int]:
        """The ids of a whole prompt; control tokens in it are what they say they are."""
        ids: list[int] = self._tokenizer.encode(prompt, add_special_tokens=False).ids
        return ids

    def encode_text(self, text: str) -> list[int]:
        """The ids of what a user wrote: words and the in-text tokens.

        Other control tokens, and characters without an id, are left out: a prompt's structure
        is never the user's.
        """
        return [i for i in self.encode_raw(text) if i not in self._barred]

    def is_known(self, character: str) -> bool:
        """Whether the vocabulary has an id for a character."""
        ids = self.encode_raw(character)
        return bool(ids) and self._unknown not in ids

    def without_control(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Refined ids as they may be spoken: those from [break_0] on are left out."""
        end = self._control["[break_0]"]
        return tuple(i for i in ids if i < end)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, control tokens included."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))
