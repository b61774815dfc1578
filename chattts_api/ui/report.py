"""The text report as HTML: what will be said, pinyin above it, what was replaced or dropped."""

from html import escape

from pypinyin import Style, pinyin

from chattts_api.types import Dropped, Reading, Replacement
from chattts_api.ui.studio import Visitor


def report_html(written: str, reading: Reading, visitor: Visitor) -> str:
    say = visitor.say
    counts = say("report_counts", replaced=len(reading.replaced), dropped=len(reading.dropped))
    spoken = "".join(
        f'<li lang="{"zh-CN" if s.language == "zh" else "en"}">{ruby(s.spoken)}</li>'
        for s in reading.segments
    )
    return (
        f'<div class="report"><p class="report-counts">{escape(counts)}</p>'
        f"<h4>{escape(say('report_written'))}</h4>"
        f'<p class="report-written">{marked(written, reading)}</p>'
        f"<h4>{escape(say('report_spoken'))}</h4>"
        f'<ol class="report-spoken">{spoken}</ol></div>'
    )


def marked(written: str, reading: Reading) -> str:
    """The input with its replaced and dropped parts in colour, and what is said instead."""
    changes: list[Replacement | Dropped] = [*reading.replaced, *reading.dropped]
    html: list[str] = []
    at = 0
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        if change.start < at:
            continue  # a change inside another one that is shown
        html.append(escape(written[at : change.start]))
        part = escape(written[change.start : change.end])
        if isinstance(change, Dropped):
            html.append(f"<del>{part or '·'}</del>")
        else:
            said = escape(change.spoken) or "∅"
            html.append(f"<mark>{part}<span aria-hidden='true'> → </span><b>{said}</b></mark>")
        at = max(at, change.end)
    html.append(escape(written[at:]))
    return "".join(html).replace("\n", "<br>")


def ruby(spoken: str) -> str:
    """Text with pinyin above its Han characters."""
    html: list[str] = []
    for piece in _pieces(spoken):
        if not _is_han(piece[0]):
            html.append(escape(piece))
            continue
        sounds = pinyin(piece, style=Style.TONE, errors=list)  # type: ignore[arg-type]
        for character, sound in zip(piece, sounds, strict=True):
            html.append(
                f"<ruby>{escape(character)}<rp>(</rp><rt>{escape(sound[0])}</rt><rp>)</rp></ruby>"
            )
    return "".join(html)


def _pieces(text: str) -> list[str]:
    """Runs of Han and of other characters."""
    pieces: list[str] = []
    for character in text:
        if pieces and _is_han(pieces[-1][0]) == _is_han(character):
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _is_han(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"
