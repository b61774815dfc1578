"""What is filled in when a visitor's page loads: choices in their language, their own voices."""

from collections.abc import Callable
from dataclasses import dataclass, field

import gradio as gr

from chattts_api.types import Voice
from chattts_api.ui.events import QUIET
from chattts_api.ui.studio import Studio, Visitor

Fill = Callable[[Visitor], object]
VoicePick = Callable[[list[Voice]], list[Voice]]


@dataclass(slots=True, eq=False)
class Loads:
    """Collected while the tabs are built, wired to the page's load at the end."""

    studio: Studio
    fills: list[tuple[gr.components.Component, Fill]] = field(default_factory=list)
    pickers: list[tuple[gr.Dropdown, Fill]] = field(default_factory=list)

    def fill(self, component: gr.components.Component, fill: Fill) -> None:
        self.fills.append((component, fill))

    def words(self, component: gr.Radio | gr.Dropdown, keys: dict[str, str]) -> None:
        """Choices whose labels are words: value -> key."""

        def choices(visitor: Visitor) -> object:
            return gr.update(choices=[(visitor.say(key), value) for value, key in keys.items()])

        self.fill(component, choices)

    def voices(self, picker: gr.Dropdown, *, saved_only: bool = False) -> None:
        """The voices a visitor may use; filled again when one is saved or deleted."""

        def choices(visitor: Visitor) -> object:
            listed = voice_choices(self.studio, visitor, saved_only=saved_only)
            return gr.update(choices=list(listed))

        self.pickers.append((picker, choices))

    def on_load(self, request: gr.Request) -> list[object]:
        visitor = self.studio.visitor(request)
        return [fill(visitor) for _, fill in [*self.fills, *self.pickers]]

    def refresh_voices(self, request: gr.Request) -> list[object]:
        visitor = self.studio.visitor(request)
        return [fill(visitor) for _, fill in self.pickers]

    def wire(self, blocks: gr.Blocks, voices_changed: gr.State) -> None:
        blocks.load(
            self.on_load,
            outputs=[c for c, _ in [*self.fills, *self.pickers]],
            **QUIET,
        )
        voices_changed.change(
            self.refresh_voices,
            outputs=[c for c, _ in self.pickers],
            **QUIET,
        )


def voice_choices(
    studio: Studio, visitor: Visitor, *, saved_only: bool = False
) -> list[tuple[str, str]]:
    """(what is shown, id) of each voice, those in the visitor's language first."""
    voices = studio.catalog.list(visitor.owner)
    if saved_only:
        voices = [v for v in voices if v.id.startswith("v_")]
    voices.sort(key=lambda v: (not v.id.startswith("v_"), v.language != visitor.language))
    return [(voice_label(voice, visitor), voice.id) for voice in voices]


def voice_label(voice: Voice, visitor: Visitor) -> str:
    gender = visitor.say(f"gender_{voice.gender}")
    language = visitor.say("language_zh" if voice.language.startswith("zh") else "language_en")
    return f"{voice.name} · {gender} · {language}"
