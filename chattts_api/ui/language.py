"""Which language a visitor reads: their choice in a cookie, else what the browser asks for."""

from http.cookies import CookieError, SimpleCookie
from typing import Final, Literal

from starlette.datastructures import Headers
from starlette.types import Scope

UiLanguage = Literal["zh", "en"]
COOKIE: Final = "chattts_lang"


def language_of(scope: Scope, default: str = "auto") -> UiLanguage:
    """The language of a request's page; `default` is the setting `CHATTTS_LANG`."""
    headers = Headers(scope=scope)
    chosen = _cookie(headers.get("cookie", ""))
    if chosen is not None:
        return chosen
    if default == "zh":
        return "zh"
    if default == "en":
        return "en"
    return _preferred(headers.get("accept-language", ""))


def _cookie(header: str) -> UiLanguage | None:
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    if morsel is None or morsel.value not in {"zh", "en"}:
        return None
    return "zh" if morsel.value == "zh" else "en"


def _preferred(header: str) -> UiLanguage:
    """The first of zh and en, as browsers list the best first."""
    for item in header.lower().split(","):
        tag = item.split(";")[0].strip()
        if tag.split("-")[0] == "zh":
            return "zh"
        if tag.split("-")[0] == "en":
            return "en"
    return "en"
