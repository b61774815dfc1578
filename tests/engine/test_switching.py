import asyncio
import contextlib

import pytest

from chattts_api.engine.switching import OverflowEngine, SwitchingEngine
from chattts_api.errors import OverloadedError, SetupError
from chattts_api.types import EngineStats


class FakeEngine:
    def __init__(self, name, *, is_full=False):
        self.name = name
        self.is_full = is_full
        self.calls = []

    async def start(self):
        self.calls.append("start")

    async def stop(self):
        self.calls.append("stop")

    def submit(self, job):
        if self.is_full:
            raise OverloadedError("full")
        return (self.name, job)

    def stats(self):
        return EngineStats(self.name, "cpu", "none", is_ready=True)


@contextlib.asynccontextmanager
async def running(engine):
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


async def test_the_built_in_voice_speaks_until_the_model_is_ready():
    arrived = asyncio.Event()
    model = FakeEngine("chattts")

    async def obtain(report):
        report("Downloading", 0.25)
        await arrived.wait()
        return model

    async with running(SwitchingEngine(FakeEngine("espeak"), obtain)) as engine:
        await asyncio.sleep(0)
        assert engine.submit("a") == ("espeak", "a")
        assert (engine.stats().notice, engine.stats().progress) == ("Downloading", 0.25)
        assert engine.stats().is_ready
        arrived.set()
        await asyncio.sleep(0.01)
        assert engine.submit("b") == ("chattts", "b")
        assert engine.name == "chattts"
        assert engine.stats().notice == ""
    assert model.calls == ["stop"]


async def test_without_weights_the_built_in_voice_stays_and_says_why():
    async def obtain(report):
        raise SetupError("No weights: set CHATTTS_MODEL_DIR.")

    async with running(SwitchingEngine(FakeEngine("espeak"), obtain)) as engine:
        await asyncio.sleep(0.01)
        assert engine.submit("a") == ("espeak", "a")
        assert "CHATTTS_MODEL_DIR" in engine.stats().notice


async def test_readiness_can_be_held_for_the_model():
    async def obtain(report):
        await asyncio.sleep(0.02)
        return FakeEngine("chattts")

    async with running(SwitchingEngine(FakeEngine("espeak"), obtain, is_held=True)) as engine:
        assert not engine.stats().is_ready
        await asyncio.sleep(0.1)
        assert engine.stats().is_ready


async def test_stopping_ends_a_switch_on_its_way():
    async def obtain(report):
        await asyncio.sleep(60)

    built_in = FakeEngine("espeak")
    async with running(SwitchingEngine(built_in, obtain)):
        pass
    assert built_in.calls == ["start", "stop"]


async def test_overflow_starts_at_need_and_takes_what_is_refused():
    first, second = FakeEngine("chattts", is_full=True), FakeEngine("espeak")
    async with running(OverflowEngine(first, second)) as engine:
        assert second.calls == []
        with pytest.raises(OverloadedError):
            engine.submit("a")
        await asyncio.sleep(0.01)
        assert engine.submit("b") == ("espeak", "b")
        first.is_full = False
        assert engine.submit("c") == ("chattts", "c")
    assert second.calls == ["start", "stop"]
