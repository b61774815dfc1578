"""Colours and fonts: a Gradio theme that loads nothing from outside."""

import gradio as gr

_FONTS = (
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "PingFang SC",
    "Microsoft YaHei",
    "Noto Sans CJK SC",
    "sans-serif",
)
_MONO = ("ui-monospace", "SFMono-Regular", "Consolas", "monospace")


def theme() -> gr.themes.Base:
    """Teal on slate, every text at least 4.5 to 1 against what is behind it."""
    made = gr.themes.Base(
        primary_hue="teal",
        secondary_hue="teal",
        neutral_hue="slate",
        radius_size="lg",
        font=_FONTS,
        font_mono=_MONO,
    )
    return made.set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="*neutral_950",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_label_text_color="*neutral_700",
        block_label_text_color_dark="*neutral_200",
        block_title_text_color="*neutral_700",
        block_title_text_color_dark="*neutral_200",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        input_placeholder_color="*neutral_500",
        input_placeholder_color_dark="*neutral_400",
        input_background_fill="white",
        input_border_width="1px",
        input_border_width_dark="1px",
        input_border_color="*neutral_300",
        input_border_color_dark="*neutral_600",
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover_dark="*primary_600",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
        button_cancel_background_fill="*neutral_100",
        button_cancel_text_color="#b91c1c",
        button_cancel_text_color_dark="#fca5a5",
        button_cancel_border_color="#b91c1c",
        slider_color="*primary_700",
        slider_color_dark="*primary_500",
        color_accent="*primary_700",
    )
