"""SRT and WebVTT, with times that are estimated inside each segment.

The model says when a segment begins and ends, not when its words do: words share their segment's
time by their length, and the files say so where their format has a place for it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

ESTIMATE_NOTE = "Times inside a segment are estimates."
MAX_CUE_WIDTH = 42  # columns; a Han character takes two

_MARKER = re.compile(r"\s*\[[a-z_]+(?:_\d)?\]\s*")
_UNIT = re.compile(
    r"[\u3000-\u9fff\uf900-\uffef\U00020000-\U000323af]|[^\s\u3000-\u9fff\uf900-\uffef]+|\s+"
)
_PAUSE_WEIGHTS = {"，": 1.5, "、": 1.0, "；": 2.0, "：": 1.5, "。": 2.5, "？": 2.5, "！": 2.5}
_SENTENCE_END = re.compile(r"[。？！.?!…]+[\"'”’）)]*$")
_CLAUSE_END = re.compile(r"[，、；：,;:]+[\"'”’）)]*$")
_LETTERS_PER_HAN = 3.0


@dataclass(frozen=True, slots=True)
class Cue:
    """A text and when it is heard."""

    start_s: float
    end_s: float
    text: str
    speaker: str = ""


def words(cue: Cue) -> list[Cue]:
    """The words of a cue, or its Han characters, with estimated times."""
    units = [unit for unit in _UNIT.findall(_plain(cue.text)) if not unit.isspace()]
    weights = [_weight(unit) for unit in units]
    scale = (cue.end_s - cue.start_s) / (sum(weights) or 1.0)
    timed: list[Cue] = []
    at = cue.start_s
    for unit, weight in zip(units, weights, strict=True):
        timed.append(replace(cue, start_s=at, end_s=at + weight * scale, text=unit))
        at += weight * scale
    return timed


def lines(cue: Cue, max_width: int = MAX_CUE_WIDTH) -> list[Cue]:
    """A segment as cues short enough to read, cut at sentences, clauses or words."""
    cut: list[Cue] = []
    for word in words(cue):
        last = cut[-1] if cut else None
        if last is None or _is_full(last.text, word.text, max_width):
            cut.append(word)
        else:
            cut[-1] = replace(last, end_s=word.end_s, text=_joined(last.text, word.text))
    return cut


def to_srt(cues: Iterable[Cue]) -> str:
    """SubRip. A speaker stands before the text."""
    return "".join(
        f"{number}\n{_clock(cue.start_s, ',')} --> {_clock(cue.end_s, ',')}\n{_named(cue)}\n\n"
        for number, cue in enumerate(_shown(cues), start=1)
    )


def to_webvtt(cues: Iterable[Cue], *, note: str = ESTIMATE_NOTE) -> str:
    """WebVTT. A speaker is the cue's voice."""
    return f"WEBVTT\n\nNOTE {_safe(note)}\n\n" + "".join(
        f"{_clock(cue.start_s, '.')} --> {_clock(cue.end_s, '.')}\n{_voiced(cue)}\n\n"
        for cue in _shown(cues)
    )


def _shown(cues: Iterable[Cue]) -> Iterator[Cue]:
    """Cues with something to show, on one line each."""
    for cue in cues:
        text = _plain(cue.text)
        if text:
            yield replace(cue, text=text, speaker=" ".join(cue.speaker.split()))


def _plain(text: str) -> str:
    return " ".join(_MARKER.sub(" ", text).split())


def _weight(unit: str) -> float:
    """How long a unit takes, in Han characters."""
    if len(unit) == 1 and (ord(unit) >= 0x3000):
        return _PAUSE_WEIGHTS.get(unit, 1.0)
    pause = 2.0 if _SENTENCE_END.search(unit) else 1.0 if _CLAUSE_END.search(unit) else 0.0
    letters = sum(char.isalnum() for char in unit)
    return max(0.5, letters / _LETTERS_PER_HAN) + pause


def _is_full(line: str, word: str, max_width: int) -> bool:
    is_mark = len(word) == 1 and word in _PAUSE_WEIGHTS
    if is_mark:
        return False
    return (
        bool(_SENTENCE_END.search(line))
        or _width(_joined(line, word)) > max_width
        or (bool(_CLAUSE_END.search(line)) and _width(line) > max_width // 2)
    )


def _joined(line: str, word: str) -> str:
    """With a space between words that are written with one."""
    gap = " " if ord(line[-1]) < 0x3000 and ord(word[0]) < 0x3000 else ""
    return f"{line}{gap}{word}"


def _width(text: str) -> int:
    return sum(2 if ord(char) >= 0x2E80 else 1 for char in text)


def _clock(seconds: float, point: str) -> str:
    ms = round(max(0.0, seconds) * 1000)
    hours, ms = divmod(ms, 3_600_000)
    minutes, ms = divmod(ms, 60_000)
    return f"{hours:02}:{minutes:02}:{ms // 1000:02}{point}{ms % 1000:03}"


def _named(cue: Cue) -> str:
    text = f"{cue.speaker}: {cue.text}" if cue.speaker else cue.text
    return text.replace("-->", "→")


def _voiced(cue: Cue) -> str:
    return f"<v {_safe(cue.speaker)}>{_safe(cue.text)}" if cue.speaker else _safe(cue.text)


def _safe(text: str) -> str:
    """WebVTT's escapes; `>` too, so that no arrow is left."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
