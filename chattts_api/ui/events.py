"""How the page's events run: without Gradio's own progress veil, and no part of its API."""

from typing import Final, Literal, TypedDict

from gradio.blocks import Block

Updates = dict[Block, object]
"""What an event changes, by component."""


class EventOptions(TypedDict):
    """Keyword arguments of an event that Gradio's listeners take."""

    show_progress: Literal["hidden"]
    api_visibility: Literal["private"]


QUIET: Final[EventOptions] = {"show_progress": "hidden", "api_visibility": "private"}
