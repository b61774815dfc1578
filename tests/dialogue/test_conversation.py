"""Turns joined into one sound, prepared ahead, freed when left."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from chattts_api.dialogue.conversation import LOOK_AHEAD, Conversation, PlannedTurn
from chattts_api.dialogue.episode import Background, Episode, plan_turns
from chattts_api.dialogue.music import FRAME, TAIL_S, MusicBed, MusicLevels
from chattts_api.dialogue.script import Turn, parse_script
from chattts_api.errors import GenerationFailedError, InputTooLongError, SpeechError
from chattts_api.synthesis import Plan, Synthesis
from chattts_api.types import SAMPLE_RATE, Samples, SpeechRequest, Voice
from tests.fakes import PlainReader, ScriptedEngine, ScriptedJob, speak_all, tone


def planned(synthesis: Synthesis, script: str, gap_s: float = 0.25) -> tuple[PlannedTurn, ...]:
    def plan(turn: Turn) -> Plan:
        voice = Voice(id=turn.role, name=turn.role)
        return synthesis.plan(SpeechRequest(input=turn.text, voice=voice, request_id="r", seed=1))

    return plan_turns(parse_script(script), plan, gap_s=gap_s)


async def all_of(pieces: Conversation | Episode) -> Samples:
    return np.concatenate([piece async for piece in pieces])


async def test_turns_follow_one_another_with_their_pauses_and_places() -> None:
    engine = ScriptedEngine(seconds=0.5)
    synthesis = Synthesis(PlainReader(), engine, timeout_s=5)
    turns = planned(synthesis, "a: one\nb: two\n[pause 1s]\na: three")
    conversation = Conversation(synthesis.speak, turns)
    sound = await all_of(conversation)
    places = [(s.role, s.text, round(s.start_s, 3), round(s.end_s, 3)) for s in conversation.spoken]
    assert places == [("a", "one", 0, 0.5), ("b", "two", 0.75, 1.25), ("a", "three", 2.25, 2.75)]
    assert len(sound) == round(2.75 * SAMPLE_RATE)
    assert not sound[round(0.5 * SAMPLE_RATE) : round(0.75 * SAMPLE_RATE)].any()
    assert [job.stream.job.voice.id for job in engine.jobs] == ["a", "b", "a"]


async def test_only_a_few_turns_are_queued_ahead() -> None:
    engine = ScriptedEngine()
    synthesis = Synthesis(PlainReader(), engine, timeout_s=5)
    pieces = aiter(Conversation(synthesis.speak, planned(synthesis, "a: x\n" * 20)))
    await anext(pieces)
    await asyncio.sleep(0.01)
    assert len(engine.jobs) == LOOK_AHEAD + 1
    await pieces.aclose()


async def test_leaving_frees_every_row() -> None:
    engine = ScriptedEngine(pace_s=0.01, seconds=60)
    synthesis = Synthesis(PlainReader(), engine, timeout_s=5)
    pieces = aiter(Conversation(synthesis.speak, planned(synthesis, "a: x\nb: y\na: z")))
    await anext(pieces)
    assert engine.running
    await pieces.aclose()
    await asyncio.sleep(0.01)
    assert not engine.running


async def test_a_turn_that_fails_fails_the_conversation_and_frees_the_others() -> None:
    async def second_fails(engine: ScriptedEngine, job: ScriptedJob) -> None:
        if job.stream.job.voice.id == "b":
            raise GenerationFailedError("no sound")
        await speak_all(engine, job)

    engine = ScriptedEngine(script=second_fails)
    synthesis = Synthesis(PlainReader(), engine, timeout_s=5)
    conversation = Conversation(synthesis.speak, planned(synthesis, "a: x\nb: y\na: z\na: w"))
    with pytest.raises(GenerationFailedError):
        await all_of(conversation)
    await asyncio.sleep(0.01)
    assert not engine.running
    assert [s.role for s in conversation.spoken] == ["a"]


async def test_music_lies_under_the_whole_and_fades_away_after_it() -> None:
    engine = ScriptedEngine(seconds=1.0)
    synthesis = Synthesis(PlainReader(), engine, timeout_s=5)
    dry = await all_of(Episode(synthesis.speak, planned(synthesis, "a: x\nb: y")))
    background = Background(tone(0.7, 500), MusicLevels())
    wet = await all_of(Episode(synthesis.speak, planned(synthesis, "a: x\nb: y"), background))
    assert len(dry) == round(2.25 * SAMPLE_RATE)
    assert len(wet) >= len(dry) + TAIL_S * SAMPLE_RATE
    assert np.abs(wet[-10:]).max() < 1e-3
    assert np.abs(wet[: len(dry)] - dry).max() > 0.01


@pytest.mark.parametrize("sizes", [[FRAME * 50], [1, 7, 479, 481, 5000]])
def test_ducking_is_the_same_however_the_speech_is_cut(sizes: Sequence[int]) -> None:
    speech = np.concatenate(
        [np.zeros(SAMPLE_RATE, np.float32), tone(2), np.zeros(SAMPLE_RATE, np.float32)]
    )
    music = tone(0.5, 300)

    def mixed(sizes: Sequence[int]) -> Samples:
        bed, out, at = MusicBed(music, MusicLevels(0, -20)), [], 0
        while at < len(speech):
            size = sizes[len(out) % len(sizes)]
            out.append(bed.push(speech[at : at + size]))
            at += size
        return np.concatenate([*out, bed.finish()])

    whole = mixed([len(speech)])
    assert np.abs(mixed(sizes) - whole).max() < 1e-6
    under = whole[: len(speech)] - speech
    loud, ducked = under[SAMPLE_RATE - 4800 : SAMPLE_RATE], under[2 * SAMPLE_RATE : 3 * SAMPLE_RATE]
    assert np.abs(loud).max() > 5 * np.abs(ducked).max()


def test_a_turn_that_is_too_long_is_named() -> None:
    def plan(turn: Turn) -> Plan:
        raise InputTooLongError("too long", param="input")

    with pytest.raises(SpeechError, match="Turn 1: too long"):
        plan_turns([Turn("a", "b")], plan)
