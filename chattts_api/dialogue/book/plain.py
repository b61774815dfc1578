"""Books without mark-up: text with chapter headings, Markdown, subtitles."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from chattts_api.dialogue.book.chapters import Chapter

_TEXT_HEADING: Final = re.compile(
    r"\s*(?:第\s*[0-9零〇一二两三四五六七八九十百千]{1,9}\s*[章回节卷部集篇幕][^。！？\n]{0,40}"
    r"|(?:chapter|part|book)\s+(?:[0-9]{1,4}|[ivxlcdm]{1,8}|[a-z]{3,12})\b[^\n]{0,60}"
    r"|(?:序章|序言|前言|楔子|引子|尾声|后记|番外|prologue|epilogue|preface|introduction)[^。！？\n]{0,40})\s*",
    re.IGNORECASE,
)
_MD_HEADING: Final = re.compile(r"#{1,3}\s+(?P<title>.+?)\s*#*\s*")
_MD_FENCE: Final = re.compile(r"\s*(```|~~~)")
_MD_MARKS: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)|\[(?P<text>[^\]]*)\]\([^)]*\)|[*_`~]{1,3}")
_MD_LEAD: Final = re.compile(r"\s*(?:>+\s*|[-*+]\s+|\d{1,4}[.)]\s+)+")
_SRT_TIME: Final = re.compile(r"\s*\d{1,3}:\d{2}(:\d{2})?[.,]\d{1,3}\s*-->.*")
_SRT_TAG: Final = re.compile(r"<[^<>]{0,100}>|\{\\[^{}]{0,100}\}")


def text_chapters(text: str) -> list[Chapter]:
    """Chapters at lines that look like a heading; the whole as one where none does."""
    return _split(text.splitlines(), lambda line: line.strip() if _is_heading(line) else None)


def markdown_chapters(text: str) -> list[Chapter]:
    """Chapters at headings of the first three levels; mark-up and code are left out."""

    def heading(line: str) -> str | None:
        match = _MD_HEADING.fullmatch(line)
        return _plain(match["title"]) if match else None

    return [
        Chapter(c.title, "\n".join(_plain(line) for line in c.text.splitlines()))
        for c in _split(_without_code(text.splitlines()), heading)
    ]


def subtitle_chapters(text: str) -> list[Chapter]:
    """SRT or WebVTT: what is said, without numbers and times."""
    said: list[str] = []
    is_cue = False
    for line in text.splitlines():
        if _SRT_TIME.fullmatch(line):
            is_cue = True
        elif not line.strip():
            is_cue = False
        elif is_cue:
            words = _SRT_TAG.sub("", line).strip()
            if words and words != (said[-1] if said else ""):  # rolling captions repeat a line
                said.append(words)
    return [Chapter("", "\n".join(said))]


def _is_heading(line: str) -> bool:
    return len(line.strip()) <= 60 and _TEXT_HEADING.fullmatch(line) is not None


def _split(lines: Iterable[str], heading: Callable[[str], str | None]) -> list[Chapter]:
    chapters: list[Chapter] = []
    title = ""
    body: list[str] = []
    for line in lines:
        found = heading(line)
        if found is None:
            body.append(line.strip())
            continue
        if title or any(body):
            chapters.append(Chapter(title, _body(title, body)))
        title, body = found, []
    chapters.append(Chapter(title, _body(title, body)))
    return chapters


def _body(title: str, lines: list[str]) -> str:
    """A heading with nothing under it (a volume's) is still read."""
    return "\n".join(line for line in lines if line) or title


def _plain(line: str) -> str:
    return _MD_MARKS.sub(lambda m: m["text"] or "", _MD_LEAD.sub("", line, count=1)).strip()


def _without_code(lines: Iterable[str]) -> Iterator[str]:
    is_code = False
    for line in lines:
        if _MD_FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line
