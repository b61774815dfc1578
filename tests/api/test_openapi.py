"""The OpenAPI document, and Schemathesis against the server that it describes."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.api.conftest import KEY, StartServer
from tests.fakes import ScriptedEngine

CHECKS = (
    "not_a_server_error,content_type_conformance,status_code_conformance,"
    "response_schema_conformance,response_headers_conformance"
)


async def test_the_document(start: StartServer) -> None:
    live = await start(max_input=1234)
    document = (await live.client.get("/openapi.json")).json()
    speech = document["paths"]["/v1/audio/speech"]["post"]
    schema = speech["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["model", "input", "voice"]
    assert schema["properties"]["input"]["maxLength"] == 1234
    assert set(schema["properties"]) >= {"break", "seed", "sample_rate", "lexicon"}
    assert set(speech["responses"]) == {"200", "4XX", "5XX"}
    assert "text/event-stream" in speech["responses"]["200"]["content"]
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert "/login" not in document["paths"]


async def test_the_document_needs_a_key(start: StartServer) -> None:
    live = await start(api_keys=[KEY])
    for path in ("/openapi.json", "/docs", "/redoc"):
        assert (await live.client.get(path)).status_code == 401


async def test_schemathesis(start: StartServer, tmp_path: Path) -> None:
    live = await start(ScriptedEngine(seconds=0.1))
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("schemathesis"), "run", f"{live.url}/openapi.json",
        "--max-examples", "8", "--checks", CHECKS, "--seed", "11", "--no-color",
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 100)
    assert process.returncode == 0, out.decode()[-3000:]
    await live.at_rest()
