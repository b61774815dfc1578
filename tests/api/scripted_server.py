"""A server process around a scripted engine, for tests of signals: prints its port, then serves."""

import asyncio
import socket
import sys

from chattts_api.api.app import create_app
from chattts_api.api.server import serve
from chattts_api.settings import Settings
from chattts_api.synthesis import Synthesis
from chattts_api.voices.catalog import VoiceCatalog
from tests.fakes import PlainReader, ScriptedEngine


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def main(seconds: float, drain_timeout: float) -> None:
    settings = Settings(host="127.0.0.1", port=free_port(), drain_timeout=drain_timeout)
    engine = ScriptedEngine(seconds=seconds, pace_s=0.01)
    synthesis = Synthesis(PlainReader(), engine, timeout_s=60)
    server = create_app(settings, synthesis, VoiceCatalog())
    sys.stdout.write(f"{settings.port}\n")
    sys.stdout.flush()
    await serve(server, settings)
    await engine.stop()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), float(sys.argv[2])))
