"""What a book is here: chapters of plain text, read in pieces, with a place to go on from."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from chattts_api.errors import ContentTooLargeError, EmptyInputError

MAX_BOOK_CHARACTERS: Final = 3_000_000
MAX_CHAPTERS: Final = 2_000
PIECE_CHARACTERS: Final = 400  # about a minute: what one request reads

_SENTENCE_END = re.compile(r"(?<=[。！？!?…；;])\s*|(?<=[.])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter; the title is read aloud when it has one."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Book:
    """Chapters and a fingerprint of them, under which a place in the book is remembered."""

    title: str
    chapters: tuple[Chapter, ...]

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for chapter in self.chapters:
            digest.update(f"{chapter.title}\0{chapter.text}\0".encode("utf-8", "replace"))
        return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on: a chapter, and a piece of it."""

    chapter: int = 0
    piece: int = 0


def checked_book(title: str, chapters: Iterable[Chapter]) -> Book:
    """The book of chapters that hold something.

    Raises:
        EmptyInputError, ContentTooLargeError
    """
    kept = tuple(c for c in chapters if c.text.strip())
    if not kept:
        raise EmptyInputError("The book holds no text.", param="file")
    if len(kept) > MAX_CHAPTERS or sum(len(c.text) for c in kept) > MAX_BOOK_CHARACTERS:
        raise ContentTooLargeError(
            f"A book has at most {MAX_CHAPTERS} chapters and {MAX_BOOK_CHARACTERS} characters.",
            param="file",
        )
    return Book(title, kept)


def pieces_of(text: str, limit: int = PIECE_CHARACTERS) -> tuple[str, ...]:
    """The text in pieces of whole sentences, each of about `limit` characters; nothing is lost."""
    pieces: list[str] = []
    current = ""
    for sentence in _sentences(text, limit):
        if current and len(current) + len(sentence) > limit:
            pieces.append(current.strip())
            current = ""
        current += sentence
    if current.strip():
        pieces.append(current.strip())
    return tuple(piece for piece in pieces if piece)


def _sentences(text: str, limit: int) -> Iterable[str]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.end() > start:
            yield from _cut(text[start : match.end()], limit)
            start = match.end()
    yield from _cut(text[start:], limit)


def _cut(sentence: str, limit: int) -> Iterable[str]:
    """A sentence longer than a piece, cut at a space or a comma where there is one."""
    while len(sentence) > limit:
        cut = max(sentence.rfind(mark, limit // 2, limit) for mark in " ，、,")
        cut = limit if cut < 0 else cut + 1
        yield sentence[:cut]
        sentence = sentence[cut:]
    if sentence:
        yield sentence
