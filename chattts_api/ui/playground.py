"""The Gradio playground: the tabs of the page at /ui."""

import gradio as gr

from chattts_api.synthesis import Synthesis
from chattts_api.ui.access import Access, OpenAccess
from chattts_api.ui.sounds import SoundShelf
from chattts_api.ui.speak_tab import SpeakTab
from chattts_api.ui.studio import Studio, StudioSettings
from chattts_api.ui.words import label
from chattts_api.voices.catalog import VoiceCatalog


class Playground:
    """The page and what it shares with its routes."""

    def __init__(self, studio: Studio, blocks: gr.Blocks) -> None:
        self.studio = studio
        self.blocks = blocks


def build_playground(
    settings: StudioSettings,
    synthesis: Synthesis,
    catalog: VoiceCatalog,
    *,
    access: Access | None = None,
) -> Playground:
    """The page over a running synthesis. `access` tells who is calling; without one, all may."""
    studio = Studio(settings, synthesis, catalog, access or OpenAccess(), SoundShelf())
    with gr.Blocks(
        title="ChatTTS", analytics_enabled=False, delete_cache=(60, 600), fill_width=False
    ) as blocks:
        gr.Markdown(label("heading"), elem_id="heading")
        with gr.Tabs(), gr.Tab(label("tab_speak"), id="speak"):
            SpeakTab(studio).build()
    blocks.queue(
        max_size=settings.max_queue,
        api_open=False,
        default_concurrency_limit=settings.max_queue,
    )
    return Playground(studio, blocks)
