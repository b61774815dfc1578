"""The page's parts that need no browser."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from starlette.types import Scope

from chattts_api.errors import NotFoundError
from chattts_api.ui.language import language_of
from chattts_api.ui.sounds import SoundShelf
from chattts_api.ui.words import script_words
from chattts_api.ui.words.en import EN
from chattts_api.ui.words.zh import ZH


def scope(**headers: str) -> Scope:
    named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    return {"type": "http", "headers": named}


@pytest.mark.parametrize(
    ("headers", "default", "language"),
    [
        ({"accept_language": "zh-CN,zh;q=0.9,en;q=0.8"}, "auto", "zh"),
        ({"accept_language": "de-DE,de;q=0.9,zh;q=0.8,en;q=0.7"}, "auto", "zh"),
        ({"accept_language": "fr"}, "auto", "en"),
        ({}, "auto", "en"),
        ({"accept_language": "en"}, "zh", "zh"),
        ({"accept_language": "zh", "cookie": "a=b; chattts_lang=en"}, "auto", "en"),
        ({"accept_language": "zh", "cookie": "chattts_lang=<script>"}, "auto", "zh"),
    ],
)
def test_the_language_is_the_cookies_then_the_settings_then_the_browsers(
    headers: dict[str, str], default: str, language: str
) -> None:
    assert language_of(scope(**headers), default) == language


def test_both_languages_have_the_same_words_and_the_same_blanks() -> None:
    assert EN.keys() == ZH.keys()
    for key, text in EN.items():
        blanks = sorted(part.split("}")[0] for part in text.split("{")[1:])
        assert sorted(part.split("}")[0] for part in ZH[key].split("{")[1:]) == blanks, key
    assert script_words("zh")["play"] == ZH["js_play"]


@pytest.fixture
def shelf() -> Iterator[SoundShelf]:
    shelf = SoundShelf(max_bytes=500)
    yield shelf
    shelf.close()


async def test_a_sound_is_followed_while_it_grows_and_read_again_when_whole(
    shelf: SoundShelf,
) -> None:
    sound = shelf.open("anna")
    pieces = [np.full(100, level, np.float32) for level in (0.5, -0.25, 2.0)]

    async def read() -> bytes:
        return b"".join([data async for data in sound.follow()])

    reader = asyncio.ensure_future(read())
    for piece in pieces:
        sound.write(piece)
        await asyncio.sleep(0)
    assert not reader.done()
    sound.close()
    heard = np.frombuffer(await reader, "<i2")
    assert heard.tolist() == [16384] * 100 + [-8192] * 100 + [32767] * 100
    assert await read() == heard.tobytes()
    assert np.abs(sound.samples()[:100] - 0.5).max() < 1e-4
    assert sound.seconds == 300 / 24000


async def test_a_sound_is_its_owners_alone_and_the_oldest_make_room(shelf: SoundShelf) -> None:
    first = shelf.open("anna")
    first.write(np.zeros(200, np.float32))
    first.close()
    assert shelf.find(first.id, "anna") is first
    with pytest.raises(NotFoundError):
        shelf.find(first.id, None)
    second = shelf.open("anna")
    second.write(np.zeros(200, np.float32))
    third = shelf.open("anna")  # 800 bytes so far: the first goes, the second is still growing
    with pytest.raises(NotFoundError):
        shelf.find(first.id, "anna")
    assert shelf.find(second.id, "anna") is second
    assert third.id != second.id
