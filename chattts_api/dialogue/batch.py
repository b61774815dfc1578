"""Many texts, one file each, in one zip: with progress, and another try for what fails."""

import asyncio
import csv
import io
import re
import unicodedata
import zipfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from chattts_api.errors import (
    ContentTooLargeError,
    EmptyInputError,
    InvalidRequestError,
    ServerError,
    SpeechError,
)

MAX_ITEMS: Final = 500
MAX_TABLE_CHARACTERS: Final = 1_000_000
AT_ONCE: Final = 4
TRIES: Final = 3
FIELDS: Final = frozenset(
    {"voice", "speed", "seed", "temperature", "top_p", "top_k", "lang", "speed_token"}
)

_SUFFIX = re.compile(r"\.(mp3|opus|ogg|aac|flac|wav|pcm|txt)$", re.IGNORECASE)
_UNSAFE = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One line: the file's name without its ending, the text, other fields of a request."""

    name: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one item."""

    item: BatchItem
    state: Literal["done", "failed"]
    tries: int
    seconds: float = 0.0
    error: SpeechError | None = None


SpeakItem = Callable[[BatchItem], Awaitable[tuple[bytes, float]]]
"""The encoded file of an item, and its seconds of sound."""


def parse_batch(table: str) -> tuple[BatchItem, ...]:
    """Items of a CSV with a header that has `text` (or `input`), else of lines, one text each.

    Raises:
        EmptyInputError, ContentTooLargeError, InvalidRequestError
    """
    if len(table) > MAX_TABLE_CHARACTERS:
        raise ContentTooLargeError(
            f"A batch has at most {MAX_TABLE_CHARACTERS} characters.", param="file"
        )
    items = _csv_items(table) if _has_header(table) else _line_items(table)
    if not items:
        raise EmptyInputError("The batch holds nothing to say.", param="file")
    if len(items) > MAX_ITEMS:
        raise InvalidRequestError(f"A batch has at most {MAX_ITEMS} items.", param="file")
    return _numbered(items)


async def run_batch(
    items: Sequence[BatchItem], speak: SpeakItem, archive: Path, suffix: str
) -> AsyncGenerator[BatchResult]:
    """Results as they come, a few items at once; the zip is whole after the last.

    The zip's `report.csv` says what became of each item.
    """
    results: list[BatchResult] = []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as pack:
        waiting = list(items)[::-1]
        running: set[asyncio.Task[tuple[BatchResult, bytes]]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < AT_ONCE:
                    running.add(asyncio.ensure_future(_spoken(waiting.pop(), speak)))
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    result, data = task.result()
                    results.append(result)
                    if result.state == "done":
                        pack.writestr(f"{result.item.name}{suffix}", data)
                    yield result
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        pack.writestr("report.csv", _report(results))


async def _spoken(item: BatchItem, speak: SpeakItem) -> tuple[BatchResult, bytes]:
    """Tries again what may succeed the next time; never raises a SpeechError."""
    for tries in range(1, TRIES + 1):
        try:
            data, seconds = await speak(item)
        except ServerError as error:
            if tries == TRIES:
                return BatchResult(item, "failed", tries, error=error), b""
            await asyncio.sleep(min(5, error.retry_after_s or 0))
        except SpeechError as error:
            return BatchResult(item, "failed", tries, error=error), b""
        else:
            return BatchResult(item, "done", tries, seconds), data
    raise AssertionError(tries)


def _has_header(table: str) -> bool:
    first = next(iter(csv.reader(io.StringIO(table[:4096]))), [])
    names = {cell.strip().lower() for cell in first}
    return len(first) > 0 and bool(names & {"text", "input", "文本"})


def _csv_items(table: str) -> list[BatchItem]:
    items: list[BatchItem] = []
    try:
        for row in csv.DictReader(io.StringIO(table)):
            cells = {
                str(k).strip().lower(): v.strip() for k, v in row.items() if isinstance(v, str)
            }
            text = cells.get("text") or cells.get("input") or cells.get("文本") or ""
            if text:
                fields = {k: v for k, v in cells.items() if k in FIELDS and v}
                name = cells.get("name") or cells.get("file") or cells.get("文件名") or ""
                items.append(BatchItem(name, text, fields))
    except csv.Error as error:
        raise InvalidRequestError("The CSV file cannot be read.", param="file") from error
    return items


def _line_items(table: str) -> list[BatchItem]:
    return [BatchItem("", line.strip()) for line in table.splitlines() if line.strip()]


def _numbered(items: Sequence[BatchItem]) -> tuple[BatchItem, ...]:
    """Every name safe in a zip, and different."""
    width = len(str(len(items)))
    named: list[BatchItem] = []
    taken: set[str] = {"report"}
    for number, item in enumerate(items, start=1):
        stem = _SUFFIX.sub("", item.name.replace("\\", "/").rpartition("/")[2])
        words = unicodedata.normalize("NFC", stem or item.text)[:24]
        slug = _UNSAFE.sub("_", words).strip("._")
        name = slug if stem and slug else f"{number:0{width}}_{slug}".rstrip("_")
        if name.casefold() in taken:
            name = f"{number:0{width}}_{name}"
        taken.add(name.casefold())
        named.append(BatchItem(name, item.text, item.fields))
    return tuple(named)


def _report(results: Sequence[BatchResult]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "state", "tries", "seconds", "error"])
    for r in results:
        code = r.error.code if r.error is not None else ""
        writer.writerow([r.item.name, r.state, r.tries, f"{r.seconds:.2f}", code])
    return out.getvalue()
