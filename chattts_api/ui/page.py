"""The page's first HTML answer: language, theme and words go in before Gradio's script runs."""

import json
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chattts_api.ui.language import UiLanguage, language_of
from chattts_api.ui.player import asset
from chattts_api.ui.words import script_words

_TAG: Final = {"zh": "zh-CN", "en": "en"}
_MANIFEST: Final = '<link rel="manifest" href="/manifest.json" />'
_ICON: Final = (
    '<link rel="icon" href="data:image/svg+xml,<svg xmlns=\'http://www.w3.org/2000/svg\' '
    "viewBox='0 0 24 24'><path fill='%230f766e' d='M4 9v6h4l5 5V4L8 9zm12 0a4 4 0 0 1 0 6'/>"
    '</svg>">'
)
# Gradio takes its language from the navigator, once, when its module loads.
_EARLY: Final = """<script>
window.chattts = {early};
{script}
Object.defineProperty(navigator, "language", {{get: () => window.chattts.tag}});
Object.defineProperty(navigator, "languages", {{get: () => [window.chattts.tag]}});
</script>"""


class PageLanguage:
    """Wraps the Gradio app; everything but its HTML page passes untouched."""

    def __init__(self, app: ASGIApp, *, default: str) -> None:
        self._app = app
        self._default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        root = scope.get("root_path", "")
        if scope["path"].removeprefix(root).strip("/"):
            await self._app(scope, receive, send)
            return
        plain = [(k, v) for k, v in scope["headers"] if k != b"accept-encoding"]
        language = language_of(scope, self._default)
        page = _Page(send, _TAG[language], early_script(language))
        await self._app({**scope, "headers": plain}, receive, page.send)


def early_script(language: UiLanguage) -> str:
    early = {"lang": language, "tag": _TAG[language], "words": script_words(language)}
    # A "<" inside a script could end it.
    text = json.dumps(early, ensure_ascii=False).replace("<", "\\u003c")
    return _EARLY.format(early=text, script=asset("page.js"))


class _Page:
    """Holds an HTML answer back until it is whole, and sends it with the script inserted."""

    def __init__(self, send: Send, tag: str, script: str) -> None:
        self._send = send
        self._tag = tag
        self._script = script
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            content_type = MutableHeaders(scope=message).get("content-type", "")
            if content_type.startswith("text/html"):
                self._start = message
                return
        if message["type"] != "http.response.body" or self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body", False):
            await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        html = self._body.decode()
        html = html.replace('lang="en"', f'lang="{self._tag}"', 1)
        html = html.replace(_MANIFEST, _ICON, 1)
        html = html.replace("<head>", "<head>" + self._script, 1)
        body = html.encode()
        headers = MutableHeaders(scope=start)
        if self._body:
            headers["content-length"] = str(len(body))
        headers["vary"] = "accept-language, cookie"
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body if self._body else b""})
