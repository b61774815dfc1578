"""Mixes two or three voices by weight."""

import asyncio
from collections.abc import AsyncGenerator

import gradio as gr

from chattts_api.errors import ChatTTSError, InvalidRequestError
from chattts_api.types import Voice
from chattts_api.ui.events import QUIET
from chattts_api.ui.keeping import build_keep_form, filled
from chattts_api.ui.loads import Loads
from chattts_api.ui.player import player, shown
from chattts_api.ui.speaking import speak_into
from chattts_api.ui.status import failed, note, running
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.words import label
from chattts_api.voices.codes import encode_speaker
from chattts_api.voices.mixing import mix_speakers
from chattts_api.voices.store import VoiceStore

NUM_PARTS = 3


def build_mix(studio: Studio, store: VoiceStore, loads: Loads, voices_changed: gr.State) -> None:
    _MixPanel(studio, store).build(loads, voices_changed)


class _MixPanel:
    def __init__(self, studio: Studio, store: VoiceStore) -> None:
        self._studio = studio
        self._store = store

    def build(self, loads: Loads, voices_changed: gr.State) -> None:
        parts: list[gr.components.Component] = []
        for number in range(NUM_PARTS):
            with gr.Row():
                voice = gr.Dropdown(
                    choices=[], label=label(f"mix_voice_{number}"), elem_id=f"mix-voice-{number}"
                )
                weight = gr.Slider(
                    0, 1, 0.5, step=0.05, label=label("weight"), elem_id=f"mix-weight-{number}"
                )
            loads.voices(voice)
            parts += [voice, weight]
        listen = gr.Button(label("listen_mix"), elem_id="mix-listen")
        status = gr.HTML(elem_id="mix-status", apply_default_css=False)
        sound = player(label("player"), "mix-sound")
        form = build_keep_form(loads, "mix")
        listen.click(self._listen, parts, [status, sound], concurrency_limit=None, **QUIET)
        form.save.click(
            self._save,
            [voices_changed, *parts, *form.inputs],
            [status, voices_changed],
            **QUIET,
        )

    def _mixed(self, parts: tuple[object, ...], visitor: Visitor) -> Voice:
        chosen = []
        for voice_id, weight in zip(parts[::2], parts[1::2], strict=True):
            if not voice_id or not isinstance(weight, int | float):
                continue
            voice = self._studio.catalog.resolve(str(voice_id), visitor.owner)
            if voice.speaker is None:
                raise InvalidRequestError("A voice without a speaker vector cannot be mixed.")
            chosen.append((voice.speaker, float(weight)))
        return Voice(id="", name="mix", speaker=mix_speakers(chosen))

    async def _listen(
        self, request: gr.Request, *parts: object
    ) -> AsyncGenerator[tuple[object, object]]:
        visitor = self._studio.visitor(request)
        try:
            mixed = self._mixed(parts, visitor)
            assert mixed.speaker is not None
            fields = {
                "input": visitor.say("preview_sentence"),
                "voice": encode_speaker(mixed.speaker),
                "seed": 42,
            }
            plan = await self._studio.plan(fields, visitor)
            sound = self._studio.shelf.open(visitor.owner)
            is_shown = False
            async for progress in speak_into(self._studio.begin, plan, sound):
                yield running(progress, visitor), gr.skip() if is_shown else shown(sound)
                is_shown = True
        except ChatTTSError as error:
            yield failed(visitor.explain(error)), gr.skip()

    async def _save(self, request: gr.Request, version: int, *values: object) -> tuple[str, int]:
        visitor = self._studio.visitor(request)
        parts, form = values[: 2 * NUM_PARTS], values[2 * NUM_PARTS :]
        try:
            voice = filled(self._mixed(parts, visitor), form)
            saved = await asyncio.to_thread(self._store.save, voice, visitor.owner)
        except ChatTTSError as error:
            return failed(visitor.explain(error)), version
        return note(visitor.say("saved", name=saved.name)), version + 1
