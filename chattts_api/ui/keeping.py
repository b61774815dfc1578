"""The form under which a voice is kept: name, gender, language, note."""

from dataclasses import dataclass, replace
from typing import Literal

import gradio as gr

from chattts_api.types import Voice
from chattts_api.ui.loads import Loads
from chattts_api.ui.words import label


@dataclass(frozen=True, slots=True, eq=False)
class KeepForm:
    """The components, in the order in which `filled` takes their values."""

    inputs: tuple[gr.components.Component, ...]
    save: gr.Button


def build_keep_form(loads: Loads, prefix: str) -> KeepForm:
    with gr.Row():
        name = gr.Textbox(
            label=label("voice_name"), max_lines=1, elem_id=f"{prefix}-name", min_width=160
        )
        gender = gr.Radio(
            choices=["female", "male", "neutral"],
            value="neutral",
            label=label("gender"),
            elem_id=f"{prefix}-gender",
        )
        language = gr.Radio(
            choices=["zh", "en"], value="zh", label=label("language"), elem_id=f"{prefix}-language"
        )
    note = gr.Textbox(label=label("note"), max_lines=2, elem_id=f"{prefix}-note")
    save = gr.Button(label("save"), variant="primary", elem_id=f"{prefix}-save")
    loads.words(gender, {g: f"gender_{g}" for g in ("female", "male", "neutral")})
    loads.words(language, {"zh": "language_zh", "en": "language_en"})
    return KeepForm((name, gender, language, note), save)


def filled(voice: Voice, form: tuple[object, ...]) -> Voice:
    """The voice under the form's name and properties."""
    name, gender, language, note = form
    known: Literal["female", "male", "neutral"] = "neutral"
    if gender == "female":
        known = "female"
    elif gender == "male":
        known = "male"
    return replace(
        voice,
        name=str(name or ""),
        gender=known,
        language="en" if language == "en" else "zh",
        description=str(note or ""),
    )
