"""Puts the playground and the player's files into a FastAPI app."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import gradio as gr
from fastapi import FastAPI
from starlette.routing import Mount

from chattts_api.ui.page import PageLanguage
from chattts_api.ui.player import asset
from chattts_api.ui.player_page import player_routes
from chattts_api.ui.playground import Playground
from chattts_api.ui.server_routes import server_routes
from chattts_api.ui.sound_routes import sound_routes
from chattts_api.ui.studio import Studio
from chattts_api.ui.theme import theme
from chattts_api.ui.words import translations


def mount_playground(app: FastAPI, playground: Playground, *, path: str = "/ui") -> None:
    """Mount the page at `path`. The guard in front of the app decides who may see it."""
    studio = playground.studio
    # Before the mount, which takes everything below the path.
    app.include_router(sound_routes(studio.shelf, studio.access), prefix=path)
    app.include_router(server_routes(studio), prefix=path)
    app.include_router(player_routes())
    gr.mount_gradio_app(
        app,
        playground.blocks,
        path=path,
        footer_links=[],
        run_history=False,
        allowed_paths=[],
        show_error=False,
        max_file_size="10mb",
        ssr_mode=False,
        enable_monitoring=False,
        mcp_server=False,
        pwa=False,
        i18n=translations(),
        theme=theme(),
        css=asset("page.css"),
    )
    _close_with(app, studio)
    mount = app.router.routes[-1]
    assert isinstance(mount, Mount)
    mount.app = PageLanguage(mount.app, default=studio.settings.lang)


def _close_with(app: FastAPI, studio: Studio) -> None:
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with inner(app) as state:
            yield state or {}
        studio.shelf.close()
        studio.exports.close()

    app.router.lifespan_context = lifespan
