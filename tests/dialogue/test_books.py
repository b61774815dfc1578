"""Books of every kind: chapters, pieces, refusals."""

import io
import zipfile

import pytest

from chattts_api.dialogue.book.chapters import Chapter, checked_book, pieces_of
from chattts_api.dialogue.book.reading import open_book
from chattts_api.errors import ContentTooLargeError, EmptyInputError, InvalidRequestError

TEXT = "序\n很久以前。\n\n第一章 出发\n他走了。\n她也走了。\n第二章\n他们到了。\n"
CONTAINER = '<container><rootfiles><rootfile full-path="OPS/c.opf"/></rootfiles></container>'
OPF = """<package><metadata><dc:title>The <b/>Road</dc:title></metadata><manifest>
<item id="n" href="nav.xhtml" properties="nav"/><item id="b" href="two%20b.xhtml"/>
<item id="a" href="a.xhtml"/><item id="x" href="../../etc/passwd"/></manifest>
<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="x"/></spine>
</package>"""
A = """<html><head><title>no</title><style>p{}</style></head><body><h1>One</h1>
<p>He <b>went</b> &amp; saw.</p><p>So did she.</p></body></html>"""
B = "<html><body><p>第二<ruby>漢<rt>han</rt></ruby>字。</p><h2>Three</h2><p>End.</p></body></html>"


def epub(files: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (files or {}).items():
            archive.writestr(name, text)
    return out.getvalue()


BOOK = {
    "META-INF/container.xml": CONTAINER,
    "OPS/c.opf": OPF,
    "OPS/a.xhtml": A,
    "OPS/two b.xhtml": B,
}


def test_text_is_cut_at_chapter_headings() -> None:
    book = open_book(TEXT.encode("gb18030"), "../路.txt")
    assert book.title == "路"
    assert book.chapters == (
        Chapter("", "序\n很久以前。"),
        Chapter("第一章 出发", "他走了。\n她也走了。"),
        Chapter("第二章", "他们到了。"),
    )


def test_markdown_loses_its_marks_and_its_code() -> None:
    text = "# One *two*\n- see [this](http://x) `now`\n```\ncode\n```\n> 1. **bold**\n## Next\nmore"
    assert open_book(text.encode(), "a.md").chapters == (
        Chapter("One two", "see this now\n\nbold".replace("\n\n", "\n")),
        Chapter("Next", "more"),
    )


def test_subtitles_give_what_is_said_once() -> None:
    times = "00:00:01,000 --> 00:00:02,000"
    text = f"1\n{times}\n<i>Hello</i>\n\n2\n{times}\nHello\n12\n"
    assert open_book(text.encode(), "a.srt").chapters == (Chapter("", "Hello\n12"),)


def test_an_epub_is_read_in_the_order_of_its_spine() -> None:
    book = open_book(epub(BOOK), "x.epub")
    assert book.title == "The"
    assert book.chapters == (
        Chapter("One", "He went & saw.\nSo did she."),
        Chapter("", "第二漢字。"),
        Chapter("Three", "End."),
    )


@pytest.mark.parametrize(
    ("data", "name", "error"),
    [
        (b"x", "a.pdf", InvalidRequestError),
        (b"not a zip", "a.epub", InvalidRequestError),
        (epub({"a": "b"}), "a.epub", InvalidRequestError),
        (epub(BOOK)[:-40], "a.epub", InvalidRequestError),
        (b" \n ", "a.txt", EmptyInputError),
        (b"\xff\xfe\xff", "a.txt", InvalidRequestError),
        (b"\x81", "a.txt", InvalidRequestError),
        (epub({**BOOK, "OPS/a.xhtml": "a" * (49 << 20)}), "a.epub", ContentTooLargeError),
    ],
)
def test_what_is_no_book_is_refused(data: bytes, name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_book(data, name)


@pytest.mark.parametrize(
    "text", ["一句。" * 500, "word " * 900, "x" * 2000, "短。", "A. B! C? D\nE", "，" * 900]
)
def test_pieces_hold_all_of_the_text_and_none_is_long(text: str) -> None:
    pieces = pieces_of(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(0 < len(piece) <= 400 for piece in pieces)


def test_a_book_is_known_by_its_text() -> None:
    one, two = (checked_book(t, [Chapter("a", b)]) for t, b in (("x", "b"), ("y", "b")))
    assert one.fingerprint == two.fingerprint
    assert checked_book("x", [Chapter("a", "c")]).fingerprint != one.fingerprint
