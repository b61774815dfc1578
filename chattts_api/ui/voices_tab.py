"""The Voices tab: roll candidates, audition, keep; mix; import, export, delete; a map."""

import gradio as gr

from chattts_api.ui.candidates_panel import build_candidates
from chattts_api.ui.loads import Loads
from chattts_api.ui.map_panel import build_map
from chattts_api.ui.mix_panel import build_mix
from chattts_api.ui.shelf_panel import build_shelf
from chattts_api.ui.studio import Studio
from chattts_api.ui.words import label
from chattts_api.voices.store import VoiceStore


def build_voices_tab(
    studio: Studio, store: VoiceStore, loads: Loads, voices_changed: gr.State
) -> None:
    """Each panel stands alone; `voices_changed` counts up when a voice is saved or deleted."""
    with gr.Accordion(label("candidates"), open=True):
        build_candidates(studio, store, loads, voices_changed)
    with gr.Accordion(label("my_voices"), open=True):
        build_shelf(studio, store, loads, voices_changed)
    with gr.Accordion(label("mix"), open=False):
        build_mix(studio, store, loads, voices_changed)
    with gr.Accordion(label("map"), open=False):
        build_map(studio, loads)
