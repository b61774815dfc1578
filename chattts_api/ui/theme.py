"""Colours and fonts: a Gradio theme that loads nothing from outside."""

import gradio as gr

_FONTS = (
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "sans-serif",
)
_MONO = ("ui-monospace", "SFMono-Regular", "Consolas", "monospace")


def theme() -> gr.themes.Base:
    return gr.themes.Soft(
        primary_hue="teal",
        secondary_hue="teal",
        neutral_hue="slate",
        font=_FONTS,
        font_mono=_MONO,
    )
