"""The saved voices: import a code or a file, export in every format, delete."""

import asyncio
from pathlib import Path

import gradio as gr

from chattts_api.errors import ChatTTSError, InvalidRequestError
from chattts_api.ui.events import QUIET
from chattts_api.ui.keeping import build_keep_form, filled
from chattts_api.ui.loads import Loads
from chattts_api.ui.status import failed, note
from chattts_api.ui.studio import Studio
from chattts_api.ui.words import label
from chattts_api.voices.exchange import (
    EXPORT_FORMATS,
    MAX_FILE_BYTES,
    export_voice,
    import_voice,
)
from chattts_api.voices.store import VoiceStore


def build_shelf(studio: Studio, store: VoiceStore, loads: Loads, voices_changed: gr.State) -> None:
    _ShelfPanel(studio, store).build(loads, voices_changed)


class _ShelfPanel:
    def __init__(self, studio: Studio, store: VoiceStore) -> None:
        self._studio = studio
        self._store = store

    def build(self, loads: Loads, voices_changed: gr.State) -> None:
        with gr.Row(equal_height=False):
            with gr.Column(min_width=300):
                gr.Markdown(label("export_heading"))
                saved = gr.Dropdown(choices=[], label=label("saved_voice"), elem_id="saved")
                kind = gr.Dropdown(
                    choices=list(EXPORT_FORMATS),
                    value="code",
                    label=label("format"),
                    elem_id="export-format",
                )
                with gr.Row():
                    export = gr.Button(label("export"), elem_id="export", min_width=100)
                    delete = gr.Button(
                        label("delete"), variant="stop", elem_id="delete", min_width=100
                    )
                sure = gr.Checkbox(label=label("delete_sure"), elem_id="delete-sure")
                file_out = gr.File(
                    label=label("exported"), interactive=False, visible=False, elem_id="exported"
                )
            with gr.Column(min_width=300):
                gr.Markdown(label("import_heading"))
                code = gr.Textbox(
                    label=label("speaker_code"), lines=3, max_lines=5, elem_id="import-code"
                )
                file_in = gr.File(
                    label=label("voice_file"),
                    file_types=[".npy", ".csv", ".safetensors", ".json", ".txt"],
                    height=140,
                    elem_id="import-file",
                )
                gr.Markdown(label("pt_hint"), elem_classes="hint")
                form = build_keep_form(loads, "import")
        status = gr.HTML(elem_id="shelf-status", apply_default_css=False)
        loads.voices(saved, saved_only=True)
        loads.words(kind, {f: f"export_{f}" for f in EXPORT_FORMATS})
        export.click(self._export, [saved, kind], [status, file_out], **QUIET)
        delete.click(
            self._delete,
            [voices_changed, saved, sure],
            [status, voices_changed, saved, sure],
            **QUIET,
        )
        form.save.click(
            self._import,
            [voices_changed, code, file_in, *form.inputs],
            [status, voices_changed, code, file_in],
            **QUIET,
        )

    async def _export(
        self, voice_id: str | None, kind: str, request: gr.Request
    ) -> tuple[str, object]:
        visitor = self._studio.visitor(request)
        if not voice_id:
            return failed(visitor.say("choose_voice")), gr.skip()
        try:
            stored = self._store.get(voice_id, visitor.owner)
            known = next((f for f in EXPORT_FORMATS if f == kind), None)
            if known is None:
                raise InvalidRequestError("No such format.", param="format")
            exported = export_voice(stored.voice, known)
        except ChatTTSError as error:
            return failed(visitor.explain(error)), gr.skip()
        path = self._studio.exports.write(stored.voice.name + exported.suffix, exported.data)
        return note(visitor.say("exported_note")), gr.update(value=str(path), visible=True)

    async def _delete(
        self, version: int, voice_id: str | None, is_sure: bool, request: gr.Request
    ) -> tuple[str, int, object, object]:
        visitor = self._studio.visitor(request)
        if not voice_id:
            return failed(visitor.say("choose_voice")), version, gr.skip(), gr.skip()
        if not is_sure:
            return failed(visitor.say("be_sure")), version, gr.skip(), gr.skip()
        try:
            await asyncio.to_thread(self._store.delete, voice_id, visitor.owner)
        except ChatTTSError as error:
            return failed(visitor.explain(error)), version, gr.skip(), gr.skip()
        return note(visitor.say("deleted")), version + 1, None, False

    async def _import(
        self, request: gr.Request, version: int, code: str, file: str | None, *form: object
    ) -> tuple[str, int, object, object]:
        visitor = self._studio.visitor(request)
        try:
            data = await asyncio.to_thread(_read, file) if file else (code or "").encode()
            if not data.strip():
                return failed(visitor.say("nothing_to_import")), version, gr.skip(), gr.skip()
            voice = filled(import_voice(data), form)
            saved = await asyncio.to_thread(self._store.save, voice, visitor.owner)
        except ChatTTSError as error:
            return failed(visitor.explain(error)), version, gr.skip(), gr.skip()
        return note(visitor.say("saved", name=saved.name)), version + 1, "", None


def _read(file: str) -> bytes:
    """At most one byte more than a voice file may have."""
    with Path(file).open("rb") as opened:
        return opened.read(MAX_FILE_BYTES + 1)
