"""The page's player: follows a sound of the shelf while it is being made, then offers it whole."""

from functools import cache
from pathlib import Path
from typing import Final

import gradio as gr
from gradio.i18n import I18nData

from chattts_api.ui.sounds import Sound

ASSETS: Final = Path(__file__).parent / "assets"


@cache
def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def player(name: I18nData, elem_id: str) -> gr.HTML:
    return gr.HTML(
        value=None,
        label=name,
        html_template=asset("player.html"),
        js_on_load=asset("player.js"),
        elem_id=elem_id,
        apply_default_css=False,
    )


def shown(sound: Sound, *, autoplay: bool = True) -> dict[str, object]:
    """The player's value: which sound to follow."""
    return {"id": sound.id, "url": f"sounds/{sound.id}", "autoplay": autoplay}
