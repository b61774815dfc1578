"""A script as text or as a table: who says what, in order."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from chattts_api.errors import ContentTooLargeError, EmptyInputError, InvalidRequestError

MAX_TURNS: Final = 500
MAX_ROLES: Final = 32
MAX_SCRIPT_CHARACTERS: Final = 50_000
MAX_ROLE_CHARACTERS: Final = 32

# "name: text"; a name has no punctuation of sentences, and "http://" or "12:30" name nobody.
_NAME = r"[^:：，。,.!?！？;；\[\]/]"
_LINE = re.compile(
    rf"\s*(?P<role>(?!\s){_NAME}{{1,{MAX_ROLE_CHARACTERS}}}?)\s*[:：](?!//)\s*(?P<text>.*)"
)
_PAUSE = re.compile(r"\s*\[pause (?P<amount>\d{1,5}(?:\.\d{1,3})?)(?P<unit>ms|s)\]\s*")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one role says in one go. Role "" is the narrator; pause_s None is the usual gap."""

    role: str
    text: str
    pause_s: float | None = None


def parse_script(script: str) -> tuple[Turn, ...]:
    """Turns of `name: text` lines; a line without a name goes on with the turn before it.

    A line that is only `[pause 1.5s]` sets the silence after the turn before it.

    Raises:
        EmptyInputError: nobody says anything.
        ContentTooLargeError, InvalidRequestError: more text, turns or roles than a dialogue holds.
    """
    if len(script) > MAX_SCRIPT_CHARACTERS:
        raise ContentTooLargeError(
            f"A script has at most {MAX_SCRIPT_CHARACTERS} characters.", param="script"
        )
    turns: list[Turn] = []
    for line in script.splitlines():
        if not line.strip():
            continue
        pause = _PAUSE.fullmatch(line)
        match = _LINE.fullmatch(line)
        if pause is not None and turns:
            turns[-1] = Turn(turns[-1].role, turns[-1].text, _seconds(pause))
        elif match is not None and _is_name(match["role"]):
            turns.append(Turn(match["role"].strip(), match["text"].strip()))
        elif turns:
            text = f"{turns[-1].text}\n{line.strip()}".strip()
            turns[-1] = Turn(turns[-1].role, text, turns[-1].pause_s)
        else:
            turns.append(Turn("", line.strip()))
    return _checked([turn for turn in turns if turn.text])


def script_of_rows(rows: Iterable[Sequence[object]]) -> tuple[Turn, ...]:
    """Turns of a table: role, text, and seconds of pause where a third column has a number.

    Raises as `parse_script`.
    """
    turns: list[Turn] = []
    for row in rows:
        cells = ["" if cell is None else str(cell).strip() for cell in row]
        role, text, pause = (*cells, "", "", "")[:3]
        if text:
            turns.append(Turn(role[:MAX_ROLE_CHARACTERS], text, _row_pause(pause)))
    return _checked(turns)


def roles_of(turns: Iterable[Turn]) -> tuple[str, ...]:
    """The roles in the order in which they first speak."""
    return tuple(dict.fromkeys(turn.role for turn in turns))


def _checked(turns: list[Turn]) -> tuple[Turn, ...]:
    if not turns:
        raise EmptyInputError("The script holds nothing to say.", param="script")
    if len(turns) > MAX_TURNS:
        raise InvalidRequestError(f"A dialogue has at most {MAX_TURNS} turns.", param="script")
    if sum(len(turn.text) for turn in turns) > MAX_SCRIPT_CHARACTERS:
        raise ContentTooLargeError(
            f"A script has at most {MAX_SCRIPT_CHARACTERS} characters.", param="script"
        )
    if len(roles_of(turns)) > MAX_ROLES:
        raise InvalidRequestError(f"A dialogue has at most {MAX_ROLES} roles.", param="script")
    return tuple(turns)


def _is_name(text: str) -> bool:
    return any(unicodedata.category(c)[0] == "L" for c in text)


def _seconds(pause: re.Match[str]) -> float:
    amount = float(pause["amount"])
    return min(10.0, amount / 1000 if pause["unit"] == "ms" else amount)


def _row_pause(cell: str) -> float | None:
    try:
        seconds = float(cell)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= 10 else None
