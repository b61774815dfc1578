"""GET /ui/server.json: the figures of the Server tab, for those who may see them."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from chattts_api.errors import ForbiddenError
from chattts_api.ui.server_tab import server_figures
from chattts_api.ui.studio import Studio


def server_routes(studio: Studio) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    async def figures(request: Request) -> Response:
        if not studio.access.is_admin(request.scope):
            raise ForbiddenError("The server's figures are shown to keys with the admin right.")
        return JSONResponse(server_figures(studio), headers={"cache-control": "no-store"})

    router.add_api_route("/server.json", figures, methods=["GET"])
    return router
