"""The Books tab: a long text by chapters, read aloud, gone on with after a break."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Final

import gradio as gr

from chattts_api.dialogue.book.chapters import Book, Place, pieces_of
from chattts_api.dialogue.book.reading import SUFFIXES, open_book
from chattts_api.dialogue.conversation import Conversation, PlannedTurn
from chattts_api.errors import ChatTTSError
from chattts_api.ui.events import QUIET, Updates
from chattts_api.ui.loads import Loads
from chattts_api.ui.player import player, shown
from chattts_api.ui.speak_tab import STOP_JS
from chattts_api.ui.speaking import REPORT_EVERY_S
from chattts_api.ui.status import failed, note, turns_done
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.words import label

MAX_BOOK_BYTES: Final = 10 << 20
Places = dict[str, list[int]]
"""Fingerprint of a book -> chapter and piece; kept in the visitor's browser."""

_PIECE_GAP_S: Final = 0.5
_KEPT_PLACES: Final = 20


class BookTab:
    """Builds the tab inside the current Blocks."""

    def __init__(self, studio: Studio, loads: Loads) -> None:
        self._studio = studio
        self._loads = loads

    def build(self) -> None:
        with gr.Row():
            with gr.Column(min_width=300):
                pasted = gr.Textbox(
                    label=label("book_text"), lines=5, max_lines=12, elem_id="book-text"
                )
                file = gr.File(
                    label=label("book_file"),
                    file_types=list(SUFFIXES),
                    height=130,
                    elem_id="book-file",
                )
                open_button = gr.Button(label("open_book"), elem_id="open-book")
            with gr.Column(min_width=300):
                self._chapters = gr.Dropdown(
                    choices=[], label=label("chapter"), elem_id="chapter", interactive=True
                )
                voice = gr.Dropdown(
                    choices=[("qinghe", "qinghe")],
                    value="qinghe",
                    label=label("voice"),
                    allow_custom_value=True,
                    elem_id="book-voice",
                )
                speed = gr.Slider(0.5, 2, 1, step=0.05, label=label("speed"), elem_id="book-speed")
                with gr.Row():
                    read = gr.Button(
                        label("read_chapter"),
                        variant="primary",
                        elem_id="read-chapter",
                        min_width=120,
                    )
                    resume = gr.Button(label("resume"), elem_id="resume", min_width=120)
                    stop = gr.Button(label("stop"), elem_id="stop-book", min_width=120)
        self._loads.voices(voice)
        self._status = gr.HTML(elem_id="book-status", apply_default_css=False)
        self._player = player(label("player"), "book-sound")
        self._excerpt = gr.HTML(elem_id="excerpt", apply_default_css=False)
        self._book = gr.State(None)
        self._places = gr.BrowserState({}, storage_key="chattts_places", secret="public")  # noqa: S106
        open_button.click(
            self._open,
            [pasted, file, self._places],
            [self._status, self._chapters, self._book],
            **QUIET,
        )
        inputs = [self._book, self._chapters, voice, speed, self._places]
        outputs = [self._status, self._player, self._excerpt, self._places, self._chapters]
        begun = read.click(self._read_chapter, inputs, outputs, concurrency_limit=None, **QUIET)
        resumed = resume.click(self._resume, inputs, outputs, concurrency_limit=None, **QUIET)
        stop.click(self._stopped, None, self._status, cancels=[begun, resumed], js=STOP_JS, **QUIET)

    def _stopped(self, request: gr.Request) -> str:
        return note(self._studio.visitor(request).say("book_stopped"))

    async def _open(
        self, pasted: str, file: str | None, places: Places, request: gr.Request
    ) -> tuple[str, object, Book | None]:
        visitor = self._studio.visitor(request)
        try:
            if file:
                data = await asyncio.to_thread(_read, file)
                book = await asyncio.to_thread(open_book, data, Path(file).name)
            else:
                book = await asyncio.to_thread(open_book, (pasted or "").encode(), "text.txt")
        except ChatTTSError as error:
            return failed(visitor.explain(error)), gr.skip(), None
        place = _place(places, book)
        choices = [
            (f"{n + 1}. {c.title or visitor.say('untitled')} ({len(c.text)})", n)
            for n, c in enumerate(book.chapters)
        ]
        message = visitor.say("book_opened", chapters=len(choices), chapter=place.chapter + 1)
        return note(message), gr.update(choices=choices, value=place.chapter), book

    async def _read_chapter(
        self,
        book: Book | None,
        chapter: int | None,
        voice: str,
        speed: float,
        places: Places,
        request: gr.Request,
    ) -> AsyncGenerator[Updates]:
        place = Place(chapter or 0, 0)
        async for updates in self._read(book, place, (voice, speed), places, request):
            yield updates

    async def _resume(
        self,
        book: Book | None,
        chapter: int | None,  # noqa: ARG002
        voice: str,
        speed: float,
        places: Places,
        request: gr.Request,
    ) -> AsyncGenerator[Updates]:
        place = _place(places, book) if book is not None else Place()
        async for updates in self._read(book, place, (voice, speed), places, request):
            yield updates

    async def _read(
        self,
        book: Book | None,
        place: Place,
        how: tuple[str, float],
        places: Places,
        request: gr.Request,
    ) -> AsyncGenerator[Updates]:
        """One chapter from a place; the place moves on with each piece that has been spoken."""
        visitor = self._studio.visitor(request)
        if book is None:
            yield {self._status: failed(visitor.say("open_first"))}
            return
        try:
            pieces = pieces_of(book.chapters[place.chapter].text)
            first = min(place.piece, len(pieces) - 1)
            turns = await self._planned(pieces[first:], how, visitor)
        except ChatTTSError as error:
            yield {self._status: failed(visitor.explain(error))}
            return
        conversation = Conversation(self._studio.begin, turns)
        sound = self._studio.shelf.open(visitor.owner)
        reported, told = 0.0, -1
        try:
            async with aclosing(aiter(conversation)) as samples_of:
                async for samples in samples_of:
                    sound.write(samples)
                    done = first + len(conversation.spoken)
                    if done == told and time.monotonic() - reported < REPORT_EVERY_S:
                        continue
                    updates: Updates = {
                        self._status: turns_done(done, len(pieces), sound.seconds, visitor)
                    }
                    if told < 0:
                        updates[self._player] = shown(sound)
                    if done != told and done < len(pieces):
                        now = Place(place.chapter, done)
                        updates[self._places] = _kept(places, book, now)
                        updates[self._excerpt] = _excerpt(pieces[done])
                    reported, told = time.monotonic(), done
                    yield updates
        except ChatTTSError as error:
            yield {self._status: failed(visitor.explain(error))}
            return
        finally:
            sound.close()
        following = Place((place.chapter + 1) % len(book.chapters), 0)
        yield {
            self._status: turns_done(len(pieces), len(pieces), sound.seconds, visitor),
            self._places: _kept(places, book, following),
            self._chapters: following.chapter,
        }

    async def _planned(
        self, pieces: tuple[str, ...], how: tuple[str, float], visitor: Visitor
    ) -> tuple[PlannedTurn, ...]:
        voice, speed = how
        turns: list[PlannedTurn] = []
        for piece in pieces:
            fields = {"input": piece, "voice": voice or None, "speed": float(speed)}
            plan = await self._studio.plan(fields, visitor)
            turns.append(PlannedTurn("", piece, plan, _PIECE_GAP_S))
        return tuple(turns)


def _place(places: Places, book: Book) -> Place:
    """The remembered place, wherever it still exists; the browser's word is not trusted."""
    kept = places.get(book.fingerprint) if isinstance(places, dict) else None
    match kept:
        case [int(chapter), int(piece)] if 0 <= chapter < len(book.chapters) and piece >= 0:
            return Place(chapter, piece)
    return Place()


def _kept(places: Places, book: Book, place: Place) -> Places:
    others = {k: v for k, v in places.items() if k != book.fingerprint}
    newest = dict(list(others.items())[-(_KEPT_PLACES - 1) :])
    return {**newest, book.fingerprint: [place.chapter, place.piece]}


def _excerpt(piece: str) -> str:
    from html import escape

    return f'<blockquote class="excerpt">{escape(piece)}</blockquote>'


def _read(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(MAX_BOOK_BYTES + 1)
