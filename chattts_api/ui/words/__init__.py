"""Every word of the page in both languages.

Labels are translated in the browser by Gradio; what is made while an event runs, by `say`.
"""

import gradio as gr
from gradio.i18n import I18nData

from chattts_api.ui.language import UiLanguage
from chattts_api.ui.words.en import EN
from chattts_api.ui.words.zh import ZH

_WORDS: dict[UiLanguage, dict[str, str]] = {"zh": ZH, "en": EN}
_SCRIPT_PREFIX = "js_"


def translations() -> gr.I18n:
    """Both languages for Gradio's own translation of labels."""
    return gr.I18n(**{"en": EN, "zh": ZH, "zh-CN": ZH})


def label(key: str) -> I18nData:
    """A label that the browser translates."""
    assert key in EN
    return I18nData(key)


def say(language: UiLanguage, key: str, **values: object) -> str:
    """A sentence of the page, now."""
    return _WORDS[language][key].format(**values)


def script_words(language: UiLanguage) -> dict[str, str]:
    """The words that the page's own scripts use."""
    return {
        k.removeprefix(_SCRIPT_PREFIX): v
        for k, v in _WORDS[language].items()
        if k.startswith(_SCRIPT_PREFIX)
    }


def has_word(key: str) -> bool:
    return key in EN
