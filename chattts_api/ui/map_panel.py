"""A map of the voices, and the neighbours of one."""

from html import escape

import gradio as gr

from chattts_api.errors import ChatTTSError
from chattts_api.types import Voice
from chattts_api.ui.events import QUIET
from chattts_api.ui.loads import Loads
from chattts_api.ui.status import failed
from chattts_api.ui.studio import Studio, Visitor
from chattts_api.ui.words import label
from chattts_api.voices.mixing import neighbours, speaker_map

_WIDTH, _HEIGHT, _MARGIN = 640, 360, 44


def build_map(studio: Studio, loads: Loads) -> None:
    picker = gr.Dropdown(choices=[], label=label("map_voice"), elem_id="map-voice")
    loads.voices(picker)
    show = gr.Button(label("show_map"), elem_id="show-map")
    picture = gr.HTML(elem_id="map", apply_default_css=False)

    def draw(voice_id: str | None, request: gr.Request) -> str:
        visitor = studio.visitor(request)
        voices = [v for v in studio.catalog.list(visitor.owner) if v.speaker is not None]
        try:
            chosen = studio.catalog.resolve(voice_id, visitor.owner) if voice_id else None
        except ChatTTSError as error:
            return failed(visitor.explain(error))
        return map_html(voices, chosen, visitor)

    show.click(draw, picker, picture, **QUIET)


def map_html(voices: list[Voice], chosen: Voice | None, visitor: Visitor) -> str:
    points = speaker_map([v.speaker for v in voices if v.speaker is not None])
    scale = abs(points).max(axis=0).clip(min=1e-9)
    dots: list[str] = []
    for voice, point in zip(voices, points / scale, strict=True):
        x = _WIDTH / 2 + point[0] * (_WIDTH / 2 - _MARGIN)
        y = _HEIGHT / 2 - point[1] * (_HEIGHT / 2 - _MARGIN)
        is_chosen = chosen is not None and voice.id == chosen.id
        kind = "chosen" if is_chosen else f"dot-{voice.gender}"
        dots.append(
            f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="{7 if is_chosen else 5}"/>'
            f'<text x="{x:.0f}" y="{y - 9:.0f}" text-anchor="middle">{escape(voice.name)}</text>'
        )
    picture = (
        f'<svg class="voice-map" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(visitor.say("map_name"))}">{"".join(dots)}</svg>'
    )
    return picture + _near_html(voices, chosen, visitor)


def _near_html(voices: list[Voice], chosen: Voice | None, visitor: Visitor) -> str:
    if chosen is None or chosen.speaker is None:
        return ""
    others = [v for v in voices if v.id != chosen.id]
    found = neighbours(chosen.speaker, [v.speaker for v in others if v.speaker is not None])
    items = "".join(
        f"<li>{escape(others[index].name)} <span>{score:.2f}</span></li>" for index, score in found
    )
    title = visitor.say("neighbours", name=chosen.name)
    return f'<p>{escape(title)}</p><ol class="near">{items}</ol>'
