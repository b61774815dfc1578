"""The page's head and foot: name, engine, language, theme, log-out, rights."""

from html import escape

import gradio as gr

from chattts_api.ui.loads import Loads
from chattts_api.ui.studio import Visitor
from chattts_api.ui.words import label


def build_header(loads: Loads) -> None:
    with gr.Row(elem_id="header", equal_height=True):
        gr.Markdown(label("heading"), elem_id="heading")
        with gr.Row(elem_id="switches"):
            zh = gr.Button("中文", size="sm", elem_id="lang-zh", min_width=70)
            en = gr.Button("English", size="sm", elem_id="lang-en", min_width=70)
            theme = gr.Button(label("theme"), size="sm", elem_id="theme", min_width=70)
            leave = gr.HTML(elem_id="leave", visible=False, apply_default_css=False)
    zh.click(None, js="() => window.chattts.language('zh')")
    en.click(None, js="() => window.chattts.language('en')")
    theme.click(None, js="() => window.chattts.theme()")
    notice = gr.HTML(elem_id="notice", apply_default_css=False)

    def log_out(visitor: Visitor) -> object:
        button = (
            '<form method="post" action="/logout">'
            f'<button type="submit">{escape(visitor.say("log_out"))}</button></form>'
        )
        is_in = loads.studio.access.is_logged_in(visitor.scope)
        return gr.update(value=button, visible=is_in)

    def engine(visitor: Visitor) -> object:
        stats = loads.studio.stats()
        key = "engine_espeak" if stats.engine == "espeak" else "engine_model"
        parts = [visitor.say(key), stats.notice]
        if stats.progress is not None:
            parts.append(f"{stats.progress:.0%}")
        text = " ".join(part for part in parts if part)
        return f'<p class="notice">{escape(text)}</p>'

    loads.fill(leave, log_out)
    loads.fill(notice, engine)


def build_footer() -> None:
    gr.Markdown(label("rights"), elem_id="rights")
