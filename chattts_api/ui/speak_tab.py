"""The Speak tab: text in, sound out."""

from collections.abc import AsyncGenerator

import gradio as gr

from chattts_api.errors import ChatTTSError
from chattts_api.ui.player import player, shown
from chattts_api.ui.speaking import speak_into
from chattts_api.ui.status import failed, running
from chattts_api.ui.studio import Studio
from chattts_api.ui.words import label


class SpeakTab:
    """Builds the tab inside the current Blocks."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def build(self) -> None:
        with gr.Row():
            with gr.Column(scale=3):
                text = gr.Textbox(
                    label=label("text"), placeholder=label("text_hint"), lines=5, elem_id="text"
                )
                with gr.Row():
                    speak = gr.Button(label("speak"), variant="primary", elem_id="speak")
                    stop = gr.Button(label("stop"), elem_id="stop")
            with gr.Column(scale=2):
                voice = gr.Dropdown(
                    choices=[v.name for v in self._studio.catalog.list()],
                    value="alloy",
                    label=label("voice"),
                    allow_custom_value=True,
                    elem_id="voice",
                )
                seed = gr.Textbox(label=label("seed"), info=label("seed_hint"), elem_id="seed")
                speed = gr.Slider(0.25, 4, 1, step=0.05, label=label("speed"), elem_id="speed")
        status = gr.HTML(elem_id="status")
        sound = player(label("player"), "sound")
        event = speak.click(
            self._speak,
            inputs=[text, voice, seed, speed],
            outputs=[sound, status],
            show_progress="hidden",
            concurrency_limit=None,
            api_visibility="private",
        )
        stop.click(None, cancels=[event])

    async def _speak(
        self, text: str, voice: str, seed: str, speed: float, request: gr.Request
    ) -> AsyncGenerator[tuple[object, str]]:
        visitor = self._studio.visitor(request)
        fields = {
            "input": text,
            "voice": voice or None,
            "seed": int(seed) if seed.strip().isascii() and seed.strip().isdigit() else None,
            "speed": float(speed),
        }
        try:
            plan = await self._studio.plan(fields, visitor)
            sound = self._studio.shelf.open(visitor.owner)
            is_shown = False
            async for progress in speak_into(self._studio.synthesis, plan, sound):
                yield (gr.skip() if is_shown else shown(sound)), running(progress, visitor)
                is_shown = True
        except ChatTTSError as error:
            yield gr.skip(), failed(visitor.explain(error))
