"""SIGTERM and SIGINT on a real process: what runs is finished, what is too long is cut, exit 0."""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import SPEECH

ROOT = Path(__file__).parents[2]
BODY = {**SPEECH, "response_format": "pcm"}


class Process:
    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def exit_code(self, timeout_s: float) -> int:
        return await asyncio.wait_for(self.process.wait(), timeout_s)


@asynccontextmanager
async def server_process(seconds: float, drain_timeout_s: float) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.api.scripted_server", str(seconds), str(drain_timeout_s),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        port = int(await asyncio.wait_for(process.stdout.readline(), 20))
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient() as client, asyncio.timeout(10):
            while True:
                with contextlib.suppress(httpx.ConnectError):
                    await client.get(f"{url}/health/ready")
                    break
                await asyncio.sleep(0.02)
        yield Process(process, url)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_streams_are_finished_and_new_work_is_refused(sent: signal.Signals) -> None:
    async with server_process(2.5, 20) as server, httpx.AsyncClient(timeout=20) as client:
        url = f"{server.url}/v1/audio/speech"
        streams = [asyncio.create_task(client.post(url, json=BODY)) for _ in range(5)]
        await asyncio.sleep(0.1)
        server.process.send_signal(sent)
        while (await client.get(f"{server.url}/health/ready")).status_code == 200:
            await asyncio.sleep(0.01)
        late = await client.post(url, json=BODY)
        assert (late.status_code, late.json()["error"]["code"]) == (503, "draining")
        assert (await client.get(f"{server.url}/health/ready")).status_code == 503
        assert (await client.get(f"{server.url}/health/live")).status_code == 200
        answers = await asyncio.gather(*streams)
        assert [len(answer.content) for answer in answers] == [120_000] * 5
        assert await server.exit_code(3) == 0


async def test_what_outlives_the_drain_is_cut() -> None:
    async with server_process(600, 1) as server, httpx.AsyncClient(timeout=20) as client:
        stream = asyncio.create_task(client.post(f"{server.url}/v1/audio/speech", json=BODY))
        await asyncio.sleep(0.1)
        began_s = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(httpx.RemoteProtocolError):
            await stream
        assert await server.exit_code(5) == 0
        assert time.monotonic() - began_s < 3.5


async def test_a_second_signal_ends_it_at_once() -> None:
    async with server_process(600, 60) as server, httpx.AsyncClient(timeout=20) as client:
        stream = asyncio.create_task(client.post(f"{server.url}/v1/audio/speech", json=BODY))
        await asyncio.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        began_s = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(httpx.RemoteProtocolError):
            await stream
        await server.exit_code(3)
        assert time.monotonic() - began_s < 2
