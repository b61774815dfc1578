"""Batches: tables to files in a zip, tried again, failures told."""

import asyncio
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from chattts_api.dialogue.batch import AT_ONCE, BatchItem, parse_batch, run_batch
from chattts_api.errors import (
    ContentTooLargeError,
    EmptyInputError,
    GenerationFailedError,
    InvalidRequestError,
    VoiceNotFoundError,
)


def test_lines_are_items_with_names_of_their_own() -> None:
    items = parse_batch("Hello there\n\n你好，世界\n")
    assert [(i.name, i.text) for i in items] == [
        ("1_Hello_there", "Hello there"),
        ("2_你好_世界", "你好，世界"),
    ]


def test_a_csv_names_files_and_fields_and_paths_are_names() -> None:
    items = parse_batch('name,text,voice,colour\nA.wav,"Hi, you",nova,red\n../../x,Yo,,\na,Ho,,\n')
    assert items == (
        BatchItem("A", "Hi, you", {"voice": "nova"}),
        BatchItem("x", "Yo"),
        BatchItem("3_a", "Ho"),
    )
    assert all("/" not in item.name and not item.name.startswith(".") for item in items)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("\n \n", EmptyInputError),
        ("text,voice\n,nova\n", EmptyInputError),
        ("x\n" * 501, InvalidRequestError),
        ("x" * 1_000_001, ContentTooLargeError),
    ],
)
def test_what_is_no_batch_is_refused(table: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_batch(table)


async def test_what_may_succeed_is_tried_again_and_the_zip_tells_all(tmp_path: Path) -> None:
    tries: Counter[str] = Counter()
    at_once = most = 0

    async def speak(item: BatchItem) -> tuple[bytes, float]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        tries[item.text] += 1
        if item.text == "flaky" and tries[item.text] < 3:
            raise GenerationFailedError("not yet")
        if item.text == "broken":
            raise GenerationFailedError("never")
        if item.text == "nobody":
            raise VoiceNotFoundError("who?", param="voice")
        return item.text.encode(), 1.5

    items = parse_batch("\n".join(["flaky", "broken", "nobody", *"abcdefgh"]))
    path = tmp_path / "out.zip"
    results = [result async for result in run_batch(items, speak, path, ".mp3")]
    states = {r.item.text: (r.state, r.tries) for r in results}
    assert states["flaky"] == ("done", 3)
    assert states["broken"] == ("failed", 3)
    assert states["nobody"] == ("failed", 1)
    assert most == AT_ONCE
    with zipfile.ZipFile(path) as pack:
        assert len(pack.namelist()) == 9 + 1
        assert pack.read("01_flaky.mp3") == b"flaky"
        report = pack.read("report.csv").decode()
    assert "02_broken,failed,3,0.00,generation_failed" in report


async def test_leaving_a_batch_stops_its_work(tmp_path: Path) -> None:
    running = 0

    async def speak(item: BatchItem) -> tuple[bytes, float]:
        nonlocal running
        running += 1
        try:
            await asyncio.sleep(0 if item.text == "a" else 60)
        finally:
            running -= 1
        return b"", 0.0

    results = run_batch(parse_batch("a\nb\nc\nd"), speak, tmp_path / "x.zip", ".wav")
    await anext(results)
    assert running == 3
    await results.aclose()
    assert running == 0
