"""The Dialogue tab: a script, a voice for each role, music, one sound with subtitles."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import gradio as gr

from chattts_api.audio.decoding import MAX_UPLOAD_BYTES, DecodeLimits, decode_audio
from chattts_api.dialogue.captions import SUBTITLE_FORMATS, captions
from chattts_api.dialogue.conversation import PlannedTurn
from chattts_api.dialogue.episode import Background, Episode, plan_turns
from chattts_api.dialogue.music import MusicLevels
from chattts_api.dialogue.script import Turn, parse_script, roles_of
from chattts_api.errors import ChatTTSError
from chattts_api.synthesis import Plan
from chattts_api.ui.cast_panel import MAX_CAST, build_cast, cast_fields
from chattts_api.ui.events import QUIET, Updates
from chattts_api.ui.loads import Loads
from chattts_api.ui.player import player, shown
from chattts_api.ui.speak_tab import STOP_JS
from chattts_api.ui.speaking import REPORT_EVERY_S
from chattts_api.ui.status import failed, note, turns_done
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.timeline import timeline_html
from chattts_api.ui.words import label

MUSIC_LIMITS = DecodeLimits(min_s=1.0, max_s=300.0)


class DialogueTab:
    """Builds the tab inside the current Blocks."""

    def __init__(self, studio: Studio, loads: Loads) -> None:
        self._studio = studio
        self._loads = loads

    def build(self) -> None:
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                script = gr.Textbox(
                    label=label("script"),
                    info=label("script_hint"),
                    lines=9,
                    max_lines=24,
                    elem_id="script",
                )
                with gr.Row(elem_classes="chips"):
                    example = gr.Button(
                        label("script_example"), size="sm", elem_id="script-example"
                    )
                    find = gr.Button(label("find_roles"), size="sm", elem_id="find-roles")
            with gr.Column(scale=2, min_width=300):
                gr.Markdown(label("cast_heading"))
                self._cast = build_cast(self._loads)
                with gr.Accordion(label("music"), open=False):
                    music = gr.File(
                        label=label("music_file"),
                        file_types=[".mp3", ".wav", ".flac", ".ogg"],
                        height=120,
                        elem_id="music",
                    )
                    level = gr.Slider(
                        -30, 0, -8, step=1, label=label("music_level"), elem_id="music-level"
                    )
                    duck = gr.Slider(
                        -30, 0, -10, step=1, label=label("music_duck"), elem_id="music-duck"
                    )
                gap = gr.Slider(0, 3, 0.4, step=0.1, label=label("gap"), elem_id="gap")
        with gr.Row():
            speak = gr.Button(label("speak_dialogue"), variant="primary", elem_id="speak-dialogue")
            stop = gr.Button(label("stop"), elem_id="stop-dialogue")
        self._status = gr.HTML(elem_id="dialogue-status", apply_default_css=False)
        self._player = player(label("player"), "dialogue-sound")
        self._timeline = gr.HTML(elem_id="timeline", apply_default_css=False)
        self._files = gr.File(
            label=label("subtitles"),
            file_count="multiple",
            interactive=False,
            visible=False,
            elem_id="subtitles",
        )
        cast_outputs = [self._status, *self._cast.outputs]
        example.click(None, js="() => window.chattts.words.script_text", outputs=script).then(
            self._find_roles, script, cast_outputs, **QUIET
        )
        find.click(self._find_roles, script, cast_outputs, **QUIET)
        script.blur(self._find_roles, script, cast_outputs, **QUIET)
        event = speak.click(
            self._speak,
            [script, gap, music, level, duck, *self._cast.inputs],
            [self._status, self._player, self._timeline, self._files, *self._cast.outputs],
            concurrency_limit=None,
            **QUIET,
        )
        stop.click(self._stopped, None, self._status, cancels=[event], js=STOP_JS, **QUIET)

    def _stopped(self, request: gr.Request) -> str:
        return note(self._studio.visitor(request).say("stopped"))

    def _find_roles(self, script: str, request: gr.Request) -> list[object]:
        visitor = self._studio.visitor(request)
        if not (script or "").strip():
            return [gr.skip() for _ in range(1 + 2 * MAX_CAST)]
        try:
            roles = roles_of(parse_script(script))
        except ChatTTSError as error:
            return [failed(visitor.explain(error))] + [gr.skip() for _ in range(2 * MAX_CAST)]
        return ["", *self._cast.shown_for(roles, visitor.say("narrator"))]

    async def _speak(
        self, request: gr.Request, script: str, gap_s: float, music: str | None, *rest: object
    ) -> AsyncGenerator[Updates]:
        visitor = self._studio.visitor(request)
        level, duck, *cast = rest
        try:
            turns = await self._planned(script or "", gap_s, tuple(cast), visitor)
            background = await _background(music, level, duck)
            episode = Episode(self._studio.begin, turns, background)
            roles = tuple(dict.fromkeys(turn.role for turn in turns))
            rows = self._cast.shown_for(roles, visitor.say("narrator"))
            first: Updates = {
                self._status: turns_done(0, len(turns), 0, visitor),
                self._timeline: "",
                self._files: gr.update(visible=False),
            }
            yield first | dict(zip(self._cast.outputs, rows, strict=True))
            async for updates in self._spoken(episode, len(turns), visitor):
                yield updates
        except ChatTTSError as error:
            yield {self._status: failed(visitor.explain(error))}

    async def _planned(
        self, script: str, gap_s: float, cast: tuple[object, ...], visitor: Visitor
    ) -> tuple[PlannedTurn, ...]:
        turns = parse_script(script)
        fields = cast_fields(roles_of(turns), cast)
        await self._studio.access.charge(visitor.scope, sum(len(t.text) for t in turns))

        def plan(turn: Turn) -> Plan:
            request = self._studio.parse({"input": turn.text, **fields[turn.role]}, visitor)
            return self._studio.synthesis.plan(request)

        return await asyncio.to_thread(plan_turns, turns, plan, gap_s=gap_s)

    async def _spoken(
        self, episode: Episode, num_turns: int, visitor: Visitor
    ) -> AsyncGenerator[Updates]:
        sound = self._studio.shelf.open(visitor.owner)
        reported, is_shown = 0.0, False
        try:
            async with aclosing(aiter(episode)) as pieces:
                async for samples in pieces:
                    sound.write(samples)
                    if is_shown and time.monotonic() - reported < REPORT_EVERY_S:
                        continue
                    reported = time.monotonic()
                    done = len(episode.spoken)
                    updates: Updates = {
                        self._status: turns_done(done, num_turns, sound.seconds, visitor),
                        self._timeline: timeline_html(episode.spoken, visitor),
                    }
                    if not is_shown:
                        updates[self._player] = shown(sound)
                        is_shown = True
                    yield updates
        finally:
            sound.close()
        files = [
            str(
                self._studio.exports.write(
                    f"dialogue.{kind}", captions(episode.spoken, kind).encode()
                )
            )
            for kind in SUBTITLE_FORMATS
        ]
        yield {
            self._status: turns_done(num_turns, num_turns, sound.seconds, visitor),
            self._timeline: timeline_html(episode.spoken, visitor),
            self._files: gr.update(value=files, visible=True),
        }


async def _background(music: str | None, level: object, duck: object) -> Background | None:
    if not music:
        return None
    data = await asyncio.to_thread(_read, music)
    samples = await decode_audio(data, MUSIC_LIMITS, param="music")
    levels = MusicLevels(
        float(level) if isinstance(level, int | float) else -8.0,
        float(duck) if isinstance(duck, int | float) else -10.0,
    )
    return Background(samples, levels)


def _read(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(MAX_UPLOAD_BYTES + 1)
