"""The real page behind the guard: nothing of Gradio's answers a stranger."""

from typing import Any

import pytest
from fastapi import FastAPI

from chattts_api.api.services import PageAccess, Services
from chattts_api.ui.mount import mount_playground
from chattts_api.ui.playground import build_playground
from tests.api.conftest import KEY, StartServer
from tests.api.test_guard import EVIL, PAGE_PATHS

BEARER = {"Authorization": f"Bearer {KEY}"}
GRADIO_PATHS = (
    "/ui/monitoring", "/ui/gradio_api/call/speak", "/ui/gradio_api/call/speak/x",
    "/ui/gradio_api/run/predict", "/ui/gradio_api/api/predict", "/ui/gradio_api/queue/status",
    "/ui/gradio_api/component_server", "/ui/gradio_api/upload_progress", "/ui/gradio_api/stream/x",
    "/ui/gradio_api/proxy=http://127.0.0.1/", "/ui/gradio_api/dev/reload", "/ui/manifest.json",
    "/ui/gradio_api/deep_link", "/ui/gradio_api/mcp/", "/ui/login", "/ui/logout", "/ui/user",
    "/ui/sounds/x.mp3", "/ui/server.json", "/ui/static/img/logo.svg", "/ui/svelte/x.js",
    "/ui/robots.txt", "/ui/gradio_api/vibe-edit/", "/player", "/player/page.js",
)  # fmt: skip


def mount_ui(app: FastAPI, services: Services) -> None:
    settings: Any = services.settings
    playground = build_playground(
        settings, services.synthesis, services.catalog, access=PageAccess(services)
    )
    mount_playground(app, playground)


async def test_the_page_is_walled(start: StartServer) -> None:
    live = await start(api_keys=[KEY], mount_ui=mount_ui, rate_limit=100_000)
    for path in (*PAGE_PATHS, *GRADIO_PATHS):
        for method in ("GET", "POST"):
            answer = await live.client.request(method, path, headers=EVIL)
            assert answer.status_code == 401, (method, path)
            assert "access-control-allow-origin" not in answer.headers
    assert len({*PAGE_PATHS, *GRADIO_PATHS}) >= 50
    page = await live.client.get("/ui/", headers=BEARER)
    assert page.status_code == 200
    assert "<html" in page.text
    config = await live.client.get("/ui/config", headers={**BEARER, **EVIL})
    assert config.status_code == 200
    assert "access-control-allow-origin" not in config.headers
    assert (await live.client.get("/player", headers=BEARER)).status_code == 200
    root = await live.client.get("/", headers=BEARER)
    assert (root.status_code, root.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("size", [11 * 1024 * 1024])
async def test_an_upload_is_bounded(start: StartServer, size: int) -> None:
    live = await start(mount_ui=mount_ui)
    files = {"files": ("a.wav", b"\0" * size)}
    answer = await live.client.post("/ui/gradio_api/upload", files=files)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "content_too_large"

    async def endless() -> Any:
        yield b"--x\r\nContent-Disposition: form-data; name=files; filename=a\r\n\r\n"
        for _ in range(size // 65_536):
            yield b"\0" * 65_536

    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = await live.client.post("/ui/gradio_api/upload", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "content_too_large"
