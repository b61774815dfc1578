"""Rolls several voices at once, lets each say the same sentence, keeps the good ones."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import Final

import gradio as gr

from chattts_api.errors import ChatTTSError
from chattts_api.ui.events import QUIET, Updates
from chattts_api.ui.keeping import build_keep_form, filled
from chattts_api.ui.loads import Loads
from chattts_api.ui.player import player, shown
from chattts_api.ui.sounds import Sound
from chattts_api.ui.speaking import speak_into
from chattts_api.ui.status import failed, note
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.words import label
from chattts_api.voices.store import VoiceStore

MAX_CANDIDATES: Final = 6


def build_candidates(
    studio: Studio, store: VoiceStore, loads: Loads, voices_changed: gr.State
) -> None:
    _CandidatesPanel(studio, store).build(loads, voices_changed)


class _CandidatesPanel:
    def __init__(self, studio: Studio, store: VoiceStore) -> None:
        self._studio = studio
        self._store = store

    def build(self, loads: Loads, voices_changed: gr.State) -> None:
        with gr.Row():
            self._sentence = gr.Textbox(
                label=label("audition_sentence"), max_lines=2, elem_id="audition", scale=3
            )
            count = gr.Slider(
                1, MAX_CANDIDATES, 4, step=1, label=label("how_many"), elem_id="how-many"
            )
        loads.fill(self._sentence, lambda v: v.say("preview_sentence"))
        roll = gr.Button(label("roll"), variant="primary", elem_id="roll")
        self._status = gr.HTML(elem_id="roll-status", apply_default_css=False)
        self._rows: list[tuple[gr.Column, gr.Markdown, gr.HTML]] = []
        with gr.Row(elem_classes="candidates"):
            for number in range(MAX_CANDIDATES):
                with gr.Column(visible=False, min_width=280) as row:
                    name = gr.Markdown("", elem_classes="candidate-name")
                    sound = player(label("player"), f"candidate-{number}")
                self._rows.append((row, name, sound))
        self._choice = gr.Radio(
            choices=[], label=label("candidate"), visible=False, elem_id="candidate"
        )
        form = build_keep_form(loads, "keep")
        outputs = [self._status, self._choice, *(c for row in self._rows for c in row)]
        roll.click(self._roll, [self._sentence, count], outputs, concurrency_limit=None, **QUIET)
        form.save.click(
            self._keep,
            [voices_changed, self._choice, *form.inputs],
            [self._status, voices_changed],
            **QUIET,
        )

    async def _roll(
        self, sentence: str, count: float, request: gr.Request
    ) -> AsyncGenerator[Updates]:
        visitor = self._studio.visitor(request)
        seeds = [secrets.randbelow(2**31) for _ in range(round(count))]
        names = [f"seed:{seed}" for seed in seeds]
        updates: Updates = {
            self._status: note(visitor.say("rolling")),
            self._choice: gr.update(choices=names, value=names[0], visible=True),
        }
        sounds = [self._studio.shelf.open(visitor.owner) for _ in names]
        for number, (row, title, sound) in enumerate(self._rows):
            is_used = number < len(names)
            updates[row] = gr.update(visible=is_used)
            if is_used:
                updates[title] = f"**{names[number]}**"
                updates[sound] = shown(sounds[number], autoplay=False)
        yield updates
        try:
            async with asyncio.TaskGroup() as group:
                for name, sound_of in zip(names, sounds, strict=True):
                    group.create_task(self._audition(name, sentence, sound_of, visitor))
        except* ChatTTSError as errors:
            yield {self._status: failed(visitor.explain(_first(errors)))}
        else:
            yield {self._status: note(visitor.say("rolled", count=len(names)))}
        finally:
            for sound_of in sounds:
                sound_of.close()

    async def _audition(self, voice: str, sentence: str, sound: Sound, visitor: Visitor) -> None:
        plan = await self._studio.plan({"input": sentence, "voice": voice, "seed": 42}, visitor)
        async for _ in speak_into(self._studio.begin, plan, sound):
            pass

    async def _keep(
        self, request: gr.Request, version: int, candidate: str | None, *form: object
    ) -> tuple[str, int]:
        visitor = self._studio.visitor(request)
        if not candidate:
            return failed(visitor.say("roll_first")), version
        try:
            voice = filled(self._studio.catalog.resolve(candidate, visitor.owner), form)
            saved = await asyncio.to_thread(self._store.save, voice, visitor.owner)
        except ChatTTSError as error:
            return failed(visitor.explain(error)), version
        return note(visitor.say("saved", name=saved.name)), version + 1


def _first(errors: BaseExceptionGroup[ChatTTSError]) -> ChatTTSError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
