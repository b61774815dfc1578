"""The controls of how something is said: pace, seed, style tokens, sampling."""

from dataclasses import dataclass

import gradio as gr
from gradio.components import Component

from chattts_api.request import MAX_SEED
from chattts_api.ui.words import label

_DICE_JS = "() => String(Math.floor(Math.random() * 2 ** 31))"


@dataclass(frozen=True, slots=True, eq=False)
class StylePanel:
    """The components, in the order in which `fields_of` takes their values."""

    inputs: tuple[Component, ...]
    seed: gr.Textbox


def build_style_panel() -> StylePanel:
    speed = gr.Slider(0.25, 4, 1, step=0.05, label=label("speed"), elem_id="speed")
    with gr.Row(equal_height=True, elem_classes="seed-row"):
        seed = gr.Textbox(
            label=label("seed"),
            placeholder=label("seed_hint"),
            max_lines=1,
            elem_id="seed",
            scale=3,
            min_width=140,
        )
        dice = gr.Button(label("dice"), elem_id="dice", scale=1, min_width=90)
    dice.click(None, js=_DICE_JS, outputs=seed)
    with gr.Accordion(label("style"), open=False):
        refine = gr.Checkbox(label=label("refine"), info=label("refine_hint"), elem_id="refine")
        oral = gr.Slider(0, 9, 2, step=1, label=label("oral"), elem_id="oral")
        laugh = gr.Slider(0, 2, 0, step=1, label=label("laugh"), elem_id="laugh")
        break_ = gr.Slider(0, 7, 4, step=1, label=label("break"), elem_id="break")
        pace = gr.Slider(0, 9, 5, step=1, label=label("pace"), elem_id="pace")
    with gr.Accordion(label("sampling"), open=False):
        temperature = gr.Slider(
            0, 2, 0.3, step=0.05, label=label("temperature"), elem_id="temperature"
        )
        top_p = gr.Slider(0.05, 1, 0.7, step=0.05, label=label("top_p"), elem_id="top-p")
        top_k = gr.Slider(1, 100, 20, step=1, label=label("top_k"), elem_id="top-k")
    inputs = (speed, seed, refine, oral, laugh, break_, pace, temperature, top_p, top_k)
    return StylePanel(inputs, seed)


def fields_of(values: tuple[object, ...]) -> dict[str, object]:
    """The fields of a request; those at their defaults are left out."""
    speed, seed, refine, oral, laugh, break_, pace, temperature, top_p, top_k = values
    fields: dict[str, object] = {
        "speed": _number(speed, 1.0),
        "seed": seed_of(seed),
        "speed_token": round(_number(pace, 5)),
        "temperature": _number(temperature, 0.3),
        "top_p": _number(top_p, 0.7),
        "top_k": round(_number(top_k, 20)),
    }
    if refine:
        fields |= {
            "refine": True,
            "oral": round(_number(oral, 2)),
            "laugh": round(_number(laugh, 0)),
            "break": round(_number(break_, 4)),
        }
    defaults = {"speed": 1.0, "speed_token": 5, "temperature": 0.3, "top_p": 0.7, "top_k": 20}
    return {k: v for k, v in fields.items() if v is not None and v != defaults.get(k)}


def seed_of(value: object) -> int | str | None:
    """The seed; what is none is passed on as it is, to be refused by name."""
    text = str(value or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit() and int(text[:30]) <= MAX_SEED:
        return int(text)
    return text


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
