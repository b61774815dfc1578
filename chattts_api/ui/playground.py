"""The Gradio playground: the tabs of the page at /ui."""

from dataclasses import dataclass

import gradio as gr

from chattts_api.synthesis import Synthesis
from chattts_api.ui.access import Access, OpenAccess
from chattts_api.ui.batch_tab import BatchTab
from chattts_api.ui.book_tab import BookTab
from chattts_api.ui.dialogue_tab import DialogueTab
from chattts_api.ui.exports import ExportFolder
from chattts_api.ui.header import build_footer, build_header
from chattts_api.ui.loads import Loads
from chattts_api.ui.server_tab import build_server_tab
from chattts_api.ui.sounds import SoundShelf
from chattts_api.ui.speak_tab import SpeakTab
from chattts_api.ui.studio import Studio, StudioSettings
from chattts_api.ui.voices_tab import build_voices_tab
from chattts_api.ui.words import label
from chattts_api.voices.catalog import VoiceCatalog
from chattts_api.voices.store import VoiceStore


@dataclass(frozen=True, slots=True, eq=False)
class Playground:
    """The page, and what it shares with its routes."""

    studio: Studio
    blocks: gr.Blocks


def build_playground(
    settings: StudioSettings,
    synthesis: Synthesis,
    catalog: VoiceCatalog,
    *,
    store: VoiceStore | None = None,
    access: Access | None = None,
) -> Playground:
    """The page over a running synthesis.

    Args:
        store: where voices are saved; without one there is no Voices tab.
        access: tells who is calling; without one, everybody may do everything.
    """
    studio = Studio(
        settings, synthesis, catalog, access or OpenAccess(), SoundShelf(), ExportFolder()
    )
    with gr.Blocks(
        title="ChatTTS", analytics_enabled=False, delete_cache=(60, 600), fill_width=False
    ) as blocks:
        loads = Loads(studio)
        voices_changed = gr.State(0)
        build_header(loads)
        with gr.Tabs(elem_id="tabs"):
            _build_tabs(studio, store, loads, voices_changed)
        build_footer()
        loads.wire(blocks, voices_changed)
    blocks.queue(
        max_size=settings.max_queue,
        api_open=False,
        default_concurrency_limit=settings.max_queue,
    )
    return Playground(studio, blocks)


def _build_tabs(
    studio: Studio, store: VoiceStore | None, loads: Loads, voices_changed: gr.State
) -> None:
    with gr.Tab(label("tab_speak"), id="speak"):
        SpeakTab(studio, loads).build()
    if store is not None:
        with gr.Tab(label("tab_voices"), id="voices"):
            build_voices_tab(studio, store, loads, voices_changed)
    with gr.Tab(label("tab_dialogue"), id="dialogue"):
        DialogueTab(studio, loads).build()
    with gr.Tab(label("tab_books"), id="books"):
        BookTab(studio, loads).build()
    with gr.Tab(label("tab_batch"), id="batch"):
        BatchTab(studio, loads).build()
    with gr.Tab(label("tab_server"), id="server-tab", visible=False) as server:
        build_server_tab()
    loads.fill(server, lambda v: gr.update(visible=studio.access.is_admin(v.scope)))
