"""Which routes are open, which requests count, and how large a body may be."""

import re
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

KIB: Final = 1024
MIN_JSON: Final = 64 * KIB
BYTES_A_CHARACTER: Final = 16  # an astral character is twelve bytes as JSON escapes
MAX_PAGE: Final = 1024 * KIB
MAX_PAGE_UPLOAD: Final = 10 * 1024 * KIB  # as Gradio is told, which would answer in its own way
MAX_UPLOAD: Final = 10 * 1024 * KIB + 64 * KIB  # the sample and the form around it
MAX_HEADERS: Final = 16 * KIB
MAX_URL: Final = 8 * KIB

_OPEN: Final = frozenset(
    {
        ("GET", "/health/live"),
        ("GET", "/health/ready"),
        ("GET", "/login"),
        ("POST", "/login"),
        ("POST", "/logout"),
    }
)
_PUBLIC: Final = re.compile(r"(/v1)?(/audio)?/models|(/v1)?/models/[^/]+|(/v1)?/audio/voices")
_UPLOADS: Final = re.compile(r"(/v1)?/audio/voices")
_PAGE_UPLOAD: Final = "/ui/gradio_api/upload"
# What a browser fetches to show the page: one visit asks for dozens, and none does any work.
_PAGE_ASSETS: Final = re.compile(
    r"/ui/(assets|static|svelte|theme\.css|favicon\.ico|custom_component"
    r"|sounds|server\.json"
    r"|gradio_api/(file|heartbeat|queue/data|startup-events|app_id|token))([/=].*)?|/player/.+"
)
_UNSAFE: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides by method and path alone, on the path as the router will see it."""

    max_input: int
    is_catalog_public: bool = False

    def is_open(self, scope: Scope) -> bool:
        """Whether this needs no key."""
        if scope["type"] != "http":
            return False
        method, path = str(scope["method"]), str(scope["path"])
        is_public = self.is_catalog_public and method == "GET"
        return (method, path) in _OPEN or (is_public and _PUBLIC.fullmatch(path) is not None)

    def is_counted(self, scope: Scope) -> bool:
        """Whether this counts as a request of its caller."""
        if scope["type"] != "http":
            return True
        is_asset = scope["method"] in {"GET", "HEAD"} and _PAGE_ASSETS.fullmatch(scope["path"])
        return not is_asset and not str(scope["path"]).startswith(("/health", "/metrics"))

    def max_body(self, scope: Scope) -> int:
        path = str(scope["path"])
        json_limit = max(MIN_JSON, self.max_input * BYTES_A_CHARACTER)
        if _UPLOADS.fullmatch(path) is not None:
            return MAX_UPLOAD
        if path == _PAGE_UPLOAD:
            return MAX_PAGE_UPLOAD
        if path.startswith("/ui/"):
            return max(MAX_PAGE, json_limit)
        return json_limit


def changes_something(scope: Scope) -> bool:
    """Whether a browser must not be made to send this by somebody else's page."""
    return scope["type"] == "websocket" or scope["method"] in _UNSAFE
