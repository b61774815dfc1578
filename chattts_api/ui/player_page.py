"""GET /player and its scripts: files of `static/`, served as they are."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

PLAYER_FOLDER: Final = Path(__file__).parents[2] / "static"
_SCRIPTS: Final = ("page.js", "player.js", "worklet.js")
_CSP: Final = (
    "default-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self' ws: wss:; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'"
)


def player_routes(folder: Path = PLAYER_FOLDER) -> APIRouter:
    """The fixed names only; there is no path in a request that could lead elsewhere."""
    router = APIRouter(include_in_schema=False)

    async def page() -> Response:
        return FileResponse(folder / "player.html", headers={"content-security-policy": _CSP})

    router.add_api_route("/player", page, methods=["GET"])
    for name in _SCRIPTS:
        router.add_api_route(f"/player/{name}", _script(folder / name), methods=["GET"])
    return router


def _script(path: Path) -> Callable[[], Awaitable[Response]]:
    async def script() -> Response:
        return FileResponse(path, media_type="text/javascript")

    return script
