"""EPUB: the chapters of a zip of XHTML, in reading order. Bounded; nothing is fetched."""

import io
import posixpath
import zipfile
import zlib
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

from chattts_api.dialogue.book.chapters import Chapter
from chattts_api.errors import ContentTooLargeError, InvalidRequestError

MAX_ENTRIES: Final = 3_000
MAX_UNPACKED_BYTES: Final = 48 << 20
_SKIPPED: Final = {"script", "style", "head", "rt", "rp", "svg", "math"}
_BLOCKS: Final = {"p", "div", "br", "li", "tr", "blockquote", "section", "h4", "h5", "h6", "hr"}
_HEADINGS: Final = {"h1", "h2", "h3"}


def epub_chapters(data: bytes) -> tuple[str, list[Chapter]]:
    """The book's title and its chapters.

    Raises:
        InvalidRequestError: not an EPUB file, or one that cannot be read.
        ContentTooLargeError: it unpacks to more than a book.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(_Archive(archive))
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError) as error:
        raise InvalidRequestError("The EPUB file cannot be read.", param="file") from error
    except RuntimeError as error:  # zipfile's word for an encrypted entry
        raise InvalidRequestError("The EPUB file is encrypted.", param="file") from error


class _Archive:
    """Reads entries and counts what comes out, whatever the directory of the zip claims."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        if len(archive.infolist()) > MAX_ENTRIES:
            raise ContentTooLargeError("The EPUB file has too many parts.", param="file")
        self._archive = archive
        self._left = MAX_UNPACKED_BYTES

    def text(self, name: str) -> str:
        with self._archive.open(name) as entry:
            data = entry.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ContentTooLargeError("The EPUB file unpacks to too much.", param="file")
        return data.decode("utf-8-sig", "replace")

    def has(self, name: str) -> bool:
        return name in self._archive.NameToInfo


def _read(archive: _Archive) -> tuple[str, list[Chapter]]:
    container = _Tags(archive.text("META-INF/container.xml"))
    package = next((t["full-path"] for n, t in container.tags if n == "rootfile"), "")
    if not package:
        raise InvalidRequestError("The EPUB file names no content.", param="file")
    opf = _Tags(archive.text(package))
    base = posixpath.dirname(package)
    files = {t.get("id"): t for n, t in opf.tags if n == "item"}
    chapters: list[Chapter] = []
    for name, tag in opf.tags:
        item = files.get(tag.get("idref")) if name == "itemref" else None
        if item is None or "nav" in (item.get("properties") or "").split():
            continue
        path = posixpath.normpath(posixpath.join(base, unquote(item.get("href") or "")))
        if archive.has(path):
            chapters += _chapters(archive.text(path))
    return opf.texts.get("dc:title", ""), chapters


def _chapters(xhtml: str) -> list[Chapter]:
    page = _Page()
    page.feed(xhtml)
    page.close()
    return page.chapters()


class _Tags(HTMLParser):
    """The tags of a small XML file with their attributes, and the text of the last of each name.

    An HTML parser knows no entities of the document's own, so none can expand.
    """

    def __init__(self, xml: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(xml)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        local = tag if tag.startswith("dc:") else tag.rpartition(":")[2]
        self.tags.append((local, {k: v or "" for k, v in attrs}))
        self._open = local

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.texts.setdefault(self._open, data.strip())


class _Page(HTMLParser):
    """The words of one XHTML page, cut at its headings."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[tuple[str, list[str]]] = [("", [])]
        self._skipped = 0
        self._heading: list[str] | None = None

    def chapters(self) -> list[Chapter]:
        found = []
        for title, words in self._parts:
            lines = ("".join(words)).splitlines()
            text = "\n".join(line.strip() for line in lines if line.strip())
            if title or text:
                found.append(Chapter(title, text or title))
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _SKIPPED:
            self._skipped += 1
        elif tag in _HEADINGS:
            self._heading = []
        elif tag in _BLOCKS:
            self._parts[-1][1].append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _BLOCKS:
            self._parts[-1][1].append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag in _HEADINGS and self._heading is not None:
            self._parts.append((" ".join("".join(self._heading).split()), []))
            self._heading = None
        elif tag in _BLOCKS:
            self._parts[-1][1].append("\n")

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._heading is not None:
            self._heading.append(data)
        else:
            self._parts[-1][1].append(data.replace("\n", " "))
