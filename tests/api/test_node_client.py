"""The real OpenAI SDK for Node, installed into a temporary folder."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.conftest import KEY, StartServer
from tests.fakes import ScriptedEngine

OPENAI_FOR_NODE = "openai@7.59.0"
SCRIPT = Path(__file__).parent / "node" / "client.mjs"


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert shutil.which("npm"), "install node and npm"
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(SCRIPT, folder)
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", OPENAI_FOR_NODE]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=90)
    return folder


async def test_openai_for_node(start: StartServer, node_folder: Path) -> None:
    live = await start(ScriptedEngine(seconds=1.0), api_keys=[KEY])
    process = await asyncio.create_subprocess_exec(
        "node", "client.mjs", f"{live.url}/v1", KEY, cwd=node_folder, stdout=subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    seen = json.loads(out)
    assert seen["contentType"] == "audio/wav"
    assert seen["requestId"] is True
    assert seen["magic"] == "RIFF"
    assert seen["pcmBytes"] == 48_000
    assert seen["error"] == {
        "status": 400,
        "code": "voice_not_found",
        "param": "voice",
        "type": "invalid_request_error",
    }
    assert seen["errorName"] == "BadRequestError"
    assert "tts-1" in seen["models"]
    assert seen["denied"] == "AuthenticationError"
