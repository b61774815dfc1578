"""The Batch tab: a CSV or lines in, a zip of files out."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from html import escape
from pathlib import Path

import gradio as gr

from chattts_api.audio.encoder import encode_whole
from chattts_api.dialogue.batch import (
    MAX_TABLE_CHARACTERS,
    BatchItem,
    BatchResult,
    parse_batch,
    run_batch,
)
from chattts_api.errors import ChatTTSError, InvalidRequestError
from chattts_api.types import SAMPLE_RATE, AudioFormat
from chattts_api.ui.events import QUIET, Updates
from chattts_api.ui.loads import Loads
from chattts_api.ui.sound_routes import FORMATS
from chattts_api.ui.status import failed, note, turns_done
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.words import label

_NUMBERS = {"speed", "temperature", "top_p"}
_WHOLE = {"seed", "top_k", "speed_token"}


class BatchTab:
    """Builds the tab inside the current Blocks."""

    def __init__(self, studio: Studio, loads: Loads) -> None:
        self._studio = studio
        self._loads = loads

    def build(self) -> None:
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                table = gr.Textbox(
                    label=label("batch_text"),
                    info=label("batch_hint"),
                    lines=7,
                    max_lines=16,
                    elem_id="batch-text",
                )
                file = gr.File(
                    label=label("batch_file"),
                    file_types=[".csv", ".txt"],
                    height=120,
                    elem_id="batch-file",
                )
            with gr.Column(scale=2, min_width=300):
                voice = gr.Dropdown(
                    choices=[("alloy", "alloy")],
                    value="alloy",
                    label=label("voice"),
                    allow_custom_value=True,
                    elem_id="batch-voice",
                )
                kind = gr.Dropdown(
                    choices=list(FORMATS),
                    value="mp3",
                    label=label("format"),
                    elem_id="batch-format",
                )
                with gr.Row():
                    start = gr.Button(
                        label("start_batch"), variant="primary", elem_id="start-batch"
                    )
                    again = gr.Button(label("retry_failed"), elem_id="retry-failed")
                    stop = gr.Button(label("stop"), elem_id="stop-batch")
        self._loads.voices(voice)
        self._status = gr.HTML(elem_id="batch-status", apply_default_css=False)
        self._table = gr.HTML(elem_id="batch-results", apply_default_css=False)
        self._zip = gr.File(
            label=label("batch_zip"), interactive=False, visible=False, elem_id="batch-zip"
        )
        self._failed = gr.State(())
        outputs = [self._status, self._table, self._zip, self._failed]
        begun = start.click(
            self._start, [table, file, voice, kind], outputs, concurrency_limit=None, **QUIET
        )
        retried = again.click(
            self._retry, [self._failed, voice, kind], outputs, concurrency_limit=None, **QUIET
        )
        stop.click(self._stopped, None, self._status, cancels=[begun, retried], **QUIET)

    def _stopped(self, request: gr.Request) -> str:
        return note(self._studio.visitor(request).say("stopped"))

    async def _start(
        self, table: str, file: str | None, voice: str, kind: str, request: gr.Request
    ) -> AsyncGenerator[Updates]:
        visitor = self._studio.visitor(request)
        try:
            text = await asyncio.to_thread(_read, file) if file else table or ""
            items = parse_batch(text)
        except ChatTTSError as error:
            yield {self._status: failed(visitor.explain(error))}
            return
        async for updates in self._run(items, voice, kind, visitor):
            yield updates

    async def _retry(
        self, items: Sequence[BatchItem], voice: str, kind: str, request: gr.Request
    ) -> AsyncGenerator[Updates]:
        visitor = self._studio.visitor(request)
        if not items:
            yield {self._status: note(visitor.say("nothing_failed"))}
            return
        async for updates in self._run(items, voice, kind, visitor):
            yield updates

    async def _run(
        self, items: Sequence[BatchItem], voice: str, kind: str, visitor: Visitor
    ) -> AsyncGenerator[Updates]:
        audio_format = next((f for f in FORMATS if f == kind), FORMATS[0])
        archive = self._studio.exports.path("speech.zip")
        results: list[BatchResult] = []
        seconds = 0.0

        def order(result: BatchResult) -> int:
            return items.index(result.item)

        async def speak(item: BatchItem) -> tuple[bytes, float]:
            return await self._spoken(item, voice, audio_format, visitor)

        yield {
            self._status: turns_done(0, len(items), 0, visitor),
            self._zip: gr.update(visible=False),
        }
        async for result in run_batch(items, speak, archive, f".{audio_format}"):
            results.append(result)
            seconds += result.seconds
            yield {
                self._status: turns_done(len(results), len(items), seconds, visitor),
                self._table: results_html(sorted(results, key=order), visitor),
            }
        failures = tuple(r.item for r in results if r.state == "failed")
        yield {
            self._zip: gr.update(value=str(archive), visible=True),
            self._failed: failures,
        }

    async def _spoken(
        self, item: BatchItem, voice: str, audio_format: AudioFormat, visitor: Visitor
    ) -> tuple[bytes, float]:
        fields = {"voice": voice or None, **_typed(item.fields), "input": item.text}
        plan = await self._studio.plan(fields, visitor)
        speech = await self._studio.begin(plan)
        pieces = [samples async for samples in speech]
        data = await asyncio.to_thread(encode_whole, pieces, audio_format)
        return data, sum(len(piece) for piece in pieces) / SAMPLE_RATE


def results_html(results: Sequence[BatchResult], visitor: Visitor) -> str:
    rows = "".join(
        f'<tr class="{r.state}"><td>{escape(r.item.name)}</td>'
        f"<td>{escape(visitor.say(f'batch_{r.state}'))}</td>"
        f"<td>{r.seconds:.1f}</td><td>{r.tries}</td>"
        f"<td>{escape(visitor.explain(r.error)) if r.error else ''}</td></tr>"
        for r in results
    )
    heads = "".join(
        f'<th scope="col">{escape(visitor.say(key))}</th>'
        for key in ("batch_name", "batch_state", "batch_seconds", "batch_tries", "batch_error")
    )
    return f'<table class="results"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _typed(fields: dict[str, str]) -> dict[str, object]:
    """Cells as the numbers they stand for."""
    typed: dict[str, object] = dict(fields)
    for name, text in fields.items():
        try:
            if name in _NUMBERS:
                typed[name] = float(text)
            elif name in _WHOLE:
                typed[name] = int(text)
        except ValueError:
            raise InvalidRequestError(f"{name} must be a number.", param=name) from None
    return typed


def _read(file: str) -> str:
    with Path(file).open("rb") as opened:
        data = opened.read(4 * MAX_TABLE_CHARACTERS + 1)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("gb18030", "replace")
