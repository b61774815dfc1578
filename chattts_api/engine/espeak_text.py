"""Text as the built-in voice takes it: short pieces of one language, and the pauses after them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MAX_PIECE = 100  # characters; a clause without any mark is cut so that others get their turn

MARKER_PAUSES_S = {
    "uv_break": 0.15,
    "v_break": 0.25,
    "lbreak": 0.35,
    "llbreak": 0.6,
    "laugh": 0.15,
}
CLAUSE_PAUSE_S = 0.16
SENTENCE_PAUSE_S = 0.32

_MARKER = re.compile(rf"\[({'|'.join(MARKER_PAUSES_S)})\]")
# A mark ends a piece where white space or Han follows: not in 3.5, nor in a.m.
_CLAUSE = re.compile(r".*?(?:[，。、？！；：…]+|[,.?!;:]+(?=\s|$|[^\x00-\x7f]))\s*|.+?$", re.DOTALL)
_SENTENCE_MARKS = frozenset("。？！.?!…")
_MARKS = _SENTENCE_MARKS | frozenset("，、；：,;:")
_HAN = re.compile(r"[\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Words of one language, and the silence after them. Without text it is silence alone."""

    text: str
    language: str
    pause_s: float


def pieces_of(spoken: str, language: str) -> list[Piece]:
    """All of a segment, in order; the pause after its last word is left to the caller."""
    pieces: list[Piece] = []
    position = 0
    for marker in _MARKER.finditer(spoken):
        pieces += _clauses(spoken[position : marker.start()], language)
        pieces.append(Piece("", language, MARKER_PAUSES_S[marker[1]]))
        position = marker.end()
    last = _clauses(spoken[position:], language)
    if last:
        last[-1] = Piece(last[-1].text, last[-1].language, 0.0)
    return pieces + last


def _clauses(text: str, language: str) -> list[Piece]:
    return [
        piece
        for clause in _CLAUSE.findall(text)
        if clause.strip()
        for piece in _runs(clause.strip(), language)
    ]


def _runs(clause: str, language: str) -> Iterator[Piece]:
    """The language runs of a clause; marks, digits and spaces go with what is before them."""
    starts: list[tuple[int, str]] = []
    for index, char in enumerate(clause):
        spoken_in = "zh" if _HAN.match(char) else "en" if _LATIN.match(char) else None
        if spoken_in is not None and (not starts or starts[-1][1] != spoken_in):
            starts.append((index if starts else 0, spoken_in))
    if not starts:
        starts = [(0, language)]
    for (start, run_language), (end, _) in pairwise([*starts, (len(clause), "")]):
        yield from _cut(clause[start:end], run_language)


def _cut(run: str, language: str) -> Iterator[Piece]:
    while len(run) > MAX_PIECE:
        space = run.rfind(" ", MAX_PIECE // 2, MAX_PIECE)
        cut = space + 1 if space > 0 else MAX_PIECE
        yield Piece(run[:cut], language, 0.0)
        run = run[cut:]
    last = run.rstrip()[-1:]
    pause_s = 0.0
    if last in _MARKS:
        pause_s = SENTENCE_PAUSE_S if last in _SENTENCE_MARKS else CLAUSE_PAUSE_S
    yield Piece(run, language, pause_s)
