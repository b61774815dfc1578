"""What a session has spoken, newest first. It lives in the session's state and nowhere else."""

from dataclasses import dataclass
from typing import Final

from chattts_api.ui.sounds import Sound

MAX_ITEMS: Final = 20
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Item:
    """One speech of the session."""

    sound_id: str
    text: str
    voice: str
    seed: int
    seconds: float

    @property
    def title(self) -> str:
        text = " ".join(self.text.split())
        short = text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
        return f"{short} · {self.voice} · {self.seconds:.1f} s"


History = tuple[Item, ...]


def remembered(history: History, item: Item) -> History:
    return (item, *history)[:MAX_ITEMS]


def choices(history: History) -> list[tuple[str, str]]:
    """(title, id) for a list of choices."""
    return [(item.title, item.sound_id) for item in history]


def item_of(sound: Sound, text: str, voice: str, seed: int) -> Item:
    return Item(sound.id, text, voice, seed, sound.seconds)
