"""The text box with what belongs to it: count, estimate, markers to insert, examples."""

import json
from typing import Final

import gradio as gr

from chattts_api.ui.loads import Loads
from chattts_api.ui.studio import Visitor
from chattts_api.ui.words import label

MARKERS: Final = ("[laugh]", "[uv_break]", "[lbreak]", "[pause 500ms]")
EXAMPLES: Final = ("example_story", "example_numbers", "example_english", "example_mixed")
_COUNT_JS: Final = "(text) => window.chattts.count(text)"
_INSERT_JS: Final = "() => window.chattts.insert({marker})"
_EXAMPLE_JS: Final = "() => window.chattts.words[{key}]"


def build_text_panel(loads: Loads) -> gr.Textbox:
    text = gr.Textbox(
        label=label("text"), placeholder=label("text_hint"), lines=6, max_lines=16, elem_id="text"
    )
    count = gr.HTML(elem_id="count", apply_default_css=False)
    with gr.Row(elem_classes="chips"):
        for marker in MARKERS:
            chip = gr.Button(marker, size="sm", min_width=80, elem_classes="chip")
            chip.click(None, js=_INSERT_JS.format(marker=json.dumps(marker)), outputs=text)
    with gr.Row(elem_classes="chips"):
        for key in EXAMPLES:
            chip = gr.Button(label(f"{key}_name"), size="sm", min_width=80, elem_classes="chip")
            chip.click(None, js=_EXAMPLE_JS.format(key=json.dumps(key)), outputs=text)
    text.change(None, inputs=text, outputs=count, js=_COUNT_JS, queue=False)
    loads.fill(count, _nothing_counted)
    return text


def _nothing_counted(visitor: Visitor) -> object:
    return f'<span class="count">{visitor.say("count_none")}</span>'
