"""Opens a book, whatever kind of file it came in."""

from pathlib import PurePath

from chattts_api.dialogue.book.chapters import Book, checked_book
from chattts_api.dialogue.book.epub import epub_chapters
from chattts_api.dialogue.book.plain import markdown_chapters, subtitle_chapters, text_chapters
from chattts_api.errors import InvalidRequestError

SUFFIXES = (".txt", ".md", ".srt", ".vtt", ".epub")
_ENCODINGS = ("utf-8-sig", "gb18030")


def open_book(data: bytes, name: str) -> Book:
    """The book of a file; its name's ending says which kind it is.

    Raises:
        InvalidRequestError: another kind of file, or one that cannot be read.
        EmptyInputError, ContentTooLargeError: from `checked_book`.
    """
    path = PurePath(name.replace("\\", "/"))
    suffix = path.suffix.lower()
    if suffix == ".epub":
        title, chapters = epub_chapters(data)
        return checked_book(title or path.stem, chapters)
    text = _text(data)
    if suffix == ".md":
        return checked_book(path.stem, markdown_chapters(text))
    if suffix in {".srt", ".vtt"}:
        return checked_book(path.stem, subtitle_chapters(text))
    if suffix == ".txt":
        return checked_book(path.stem, text_chapters(text))
    raise InvalidRequestError(f"A book is one of {', '.join(SUFFIXES)}.", param="file")


def _text(data: bytes) -> str:
    is_wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"}
    for encoding in ("utf-16",) if is_wide else _ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise InvalidRequestError("The text file is in no encoding that is known.", param="file")
