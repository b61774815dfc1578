"""The Speak tab: text in, sound out while it is made."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import gradio as gr

from chattts_api.errors import ChatTTSError
from chattts_api.ui import history
from chattts_api.ui.events import QUIET, Updates
from chattts_api.ui.history import History
from chattts_api.ui.loads import Loads
from chattts_api.ui.player import player, shown
from chattts_api.ui.report import report_html
from chattts_api.ui.snippets import base_url, curl_lines, python_lines
from chattts_api.ui.speaking import Progress, speak_into
from chattts_api.ui.status import failed, note, running
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.style_panel import build_style_panel, fields_of
from chattts_api.ui.text_panel import build_text_panel
from chattts_api.ui.words import label


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The components that events fill."""

    text: gr.Textbox
    voice: gr.Dropdown
    seed: gr.Textbox
    status: gr.HTML
    player: gr.HTML
    report: gr.HTML
    curl: gr.Textbox
    python: gr.Textbox
    history: gr.State
    replay: gr.Radio


class SpeakTab:
    """Builds the tab inside the current Blocks."""

    def __init__(self, studio: Studio, loads: Loads) -> None:
        self._studio = studio
        self._loads = loads

    def build(self) -> None:
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                text = build_text_panel(self._loads)
                with gr.Row():
                    speak = gr.Button(label("speak"), variant="primary", elem_id="speak")
                    stop = gr.Button(label("stop"), elem_id="stop")
                    check = gr.Button(label("check"), elem_id="check")
                status = gr.HTML(elem_id="status", apply_default_css=False)
                sound = player(label("player"), "sound")
            with gr.Column(scale=2, min_width=300):
                voice = gr.Dropdown(
                    value="alloy",
                    choices=[("alloy", "alloy")],
                    label=label("voice"),
                    info=label("voice_hint"),
                    allow_custom_value=True,
                    elem_id="voice",
                )
                preview = gr.Button(label("preview"), elem_id="preview", size="sm")
                panel = build_style_panel()
        self._loads.voices(voice)
        report, curl, python, replay = self._build_below()
        self._parts = _Parts(
            text, voice, panel.seed, status, sound, report, curl, python, gr.State(()), replay
        )
        inputs = [text, voice, self._parts.history, *panel.inputs]
        outputs = [status, sound, report, curl, python, self._parts.history, replay]
        spoken = speak.click(self._speak, inputs, outputs, concurrency_limit=None, **QUIET)
        previewed = preview.click(
            self._preview, [voice], [status, sound], concurrency_limit=None, **QUIET
        )
        stop.click(self._stopped, None, status, cancels=[spoken, previewed], js=STOP_JS, **QUIET)
        check.click(self._check, [text], [report, status], **QUIET)
        replay.input(
            self._replay, [replay, self._parts.history], [sound, text, voice, panel.seed], **QUIET
        )

    def _build_below(self) -> tuple[gr.HTML, gr.Textbox, gr.Textbox, gr.Radio]:
        with gr.Accordion(label("report"), open=True):
            report = gr.HTML(elem_id="report", apply_default_css=False)
        with gr.Accordion(label("history"), open=False):
            replay = gr.Radio(choices=[], label=label("history_hint"), elem_id="history")
        with gr.Accordion(label("as_code"), open=False):
            curl = gr.Textbox(
                label="curl", lines=5, interactive=False, buttons=["copy"], elem_id="curl"
            )
            python = gr.Textbox(
                label="Python", lines=9, interactive=False, buttons=["copy"], elem_id="python"
            )
        return report, curl, python, replay

    async def _speak(
        self, request: gr.Request, text: str, voice: str, past: History, *style: object
    ) -> AsyncGenerator[Updates]:
        visitor = self._studio.visitor(request)
        fields = {"input": text or "", "voice": voice or None, **fields_of(style)}
        async for updates in self._speak_fields(fields, past, visitor):
            yield updates

    async def _preview(self, voice: str, request: gr.Request) -> AsyncGenerator[Updates]:
        """The voice with a short sentence of the page's own."""
        visitor = self._studio.visitor(request)
        sentence = visitor.say("preview_sentence")
        fields: dict[str, object] = {"input": sentence, "voice": voice or None, "seed": 42}
        async for updates in self._speak_fields(fields, (), visitor):
            yield {
                k: v for k, v in updates.items() if k in {self._parts.status, self._parts.player}
            }

    async def _speak_fields(
        self, fields: dict[str, object], past: History, visitor: Visitor
    ) -> AsyncGenerator[Updates]:
        parts = self._parts
        try:
            plan = await self._studio.plan(fields, visitor)
            url = base_url(visitor.scope)
            yield {
                parts.report: report_html(plan.request.input, plan.reading, visitor),
                parts.curl: curl_lines(fields, url),
                parts.python: python_lines(fields, url),
                parts.status: running(Progress.begun(plan), visitor),
            }
            sound = self._studio.shelf.open(visitor.owner)
            is_shown = False
            async for progress in speak_into(self._studio.begin, plan, sound):
                updates: Updates = {parts.status: running(progress, visitor)}
                if not is_shown:
                    updates[parts.player] = shown(sound)
                    is_shown = True
                if progress.is_done:
                    item = history.item_of(
                        sound, plan.request.input, plan.request.voice.name, progress.seed
                    )
                    now = history.remembered(past, item)
                    updates |= {
                        parts.history: now,
                        parts.replay: gr.update(choices=history.choices(now), value=None),
                    }
                yield updates
        except ChatTTSError as error:
            yield {parts.status: failed(visitor.explain(error))}

    def _stopped(self, request: gr.Request) -> str:
        return note(self._studio.visitor(request).say("stopped"))

    async def _check(self, text: str, request: gr.Request) -> tuple[str, str]:
        visitor = self._studio.visitor(request)
        try:
            plan = await self._studio.plan({"input": text or ""}, visitor)
        except ChatTTSError as error:
            return "", failed(visitor.explain(error))
        return report_html(plan.request.input, plan.reading, visitor), ""

    def _replay(self, sound_id: str, past: History) -> tuple[object, object, object, object]:
        item = next((i for i in past if i.sound_id == sound_id), None)
        if item is None:
            return gr.skip(), gr.skip(), gr.skip(), gr.skip()
        value = {"id": item.sound_id, "url": f"sounds/{item.sound_id}", "autoplay": True}
        return value, item.text, gr.skip(), str(item.seed)


STOP_JS = (
    "() => document.querySelectorAll('[data-part=\"play\"]').forEach((b) => "
    "b.dispatchEvent(new CustomEvent('chattts-stop', { bubbles: true })))"
)
