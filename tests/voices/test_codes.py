import json
import lzma
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from chattts_api.errors import InvalidSpeakerError
from chattts_api.types import SPEAKER_SIZE
from chattts_api.voices import base16384
from chattts_api.voices.codes import (
    MAX_CODE_CHARACTERS,
    MAX_SAMPLE_STEPS,
    decode_sample,
    decode_speaker,
    encode_sample,
    encode_speaker,
)
from chattts_api.voices.generator import sample_speaker

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
UPSTREAM_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]


@pytest.fixture(scope="module")
def golden():
    texts = json.loads((GOLDEN / "reference.json").read_text(encoding="utf-8"))
    return texts, load_file(GOLDEN / "reference.safetensors")


def pack(data):
    return lzma.compress(data, lzma.FORMAT_RAW, filters=UPSTREAM_FILTERS)


def speaker_code(data):
    return base16384.encode(pack(data))


def test_speaker_codes_are_those_of_chattts(golden):
    texts, tensors = golden
    for key in ("spk_emb", "spk768"):
        decoded = decode_speaker(texts[f"{key}_str"], tensors[key].size)
        np.testing.assert_array_equal(decoded, tensors[key])
    assert encode_speaker(tensors["spk768"]) == texts["spk768_str"]


def test_sample_codes_are_those_of_chattts(golden):
    texts, tensors = golden
    np.testing.assert_array_equal(decode_sample(texts["spk_smp_str"]), tensors["spk_smp.codes"])
    assert encode_sample(tensors["spk_smp.codes"]) == texts["spk_smp_str"]


@pytest.mark.parametrize("seed", range(20))
def test_speaker_round_trip_is_exact(seed):
    speaker = sample_speaker(seed)
    code = encode_speaker(speaker)
    assert code == speaker_code(speaker.tobytes()), "as the upstream preset packs it"
    assert len(code) <= MAX_CODE_CHARACTERS
    assert decode_speaker(code).tobytes() == speaker.tobytes()


@pytest.mark.parametrize("num_bytes", range(64))
def test_base16384_round_trip(num_bytes):
    data = np.random.default_rng(num_bytes).bytes(num_bytes)
    text = base16384.encode(data)
    assert base16384.decode(text) == data
    assert base16384.is_alphabet(text)


@given(st.text(st.characters(min_codepoint=0x3D00, max_codepoint=0x8E01), max_size=40))
def test_base16384_is_one_to_one(text):
    """What decodes, encodes to the same text again: no two texts for the same bytes."""
    try:
        data = base16384.decode(text)
    except base16384.Base16384Error:
        return
    assert base16384.encode(data) == text


@pytest.mark.parametrize(
    "code",
    [
        "一一一一㵢" * 2_000,
        "一一一一㵢",
        "一㴔",
        *("一一一一" + chr(n) for n in (0x3D00, 0x3D07, 0x3D80, 0x3DFF)),
        "㴁",
        "一一㴁",
        "一一一一一",
        "蘁淰" * 300,
        "alloy",
        "😀" * 20,
        "",
        "一" * (MAX_CODE_CHARACTERS + 1),
        "一一一\ud800",
        "\x00" * 8,
    ],
    ids=ascii,
)
def test_what_is_not_a_code_is_refused(code):
    with pytest.raises(InvalidSpeakerError) as caught:
        decode_speaker(code)
    with pytest.raises(InvalidSpeakerError):
        decode_sample(code)
    assert len(caught.value.message) < 200
    assert "一一一" not in caught.value.message


def halves(*values, size=SPEAKER_SIZE):
    vector = np.ones(size, dtype=np.float16)
    vector[: len(values)] = values
    return vector.tobytes()


@pytest.mark.parametrize(
    "data",
    [
        *(halves(size=n) for n in (0, 1, 64, 767, 769, 1536)),
        halves()[:-1],
        halves() + b"\0",
        halves(np.nan),
        halves(np.inf),
        halves(-np.inf),
        halves(*[60_000.0] * 10),
        bytes(SPEAKER_SIZE * 2),
        np.full(SPEAKER_SIZE, 6e-8, dtype=np.float16).tobytes(),
    ],
)
def test_what_is_not_a_speaker_is_refused(data):
    with pytest.raises(InvalidSpeakerError):
        decode_speaker(speaker_code(data))


def test_the_unpacked_stream_must_end_where_the_code_ends():
    packed = pack(halves())
    for broken in (packed[:-1], packed + b"\0", packed + packed, packed[1:]):
        with pytest.raises(InvalidSpeakerError):
            decode_speaker(base16384.encode(broken))


def test_a_bomb_costs_nothing():
    bomb = pack(bytes(16 << 20))
    speaker, sample = base16384.encode(bomb), base16384.encode(struct.pack("<2H", 4, 9) + bomb)
    assert len(speaker) < MAX_CODE_CHARACTERS
    begin = time.perf_counter()
    for _ in range(10):
        with pytest.raises(InvalidSpeakerError):
            decode_speaker(speaker)
        with pytest.raises(InvalidSpeakerError):
            decode_sample(sample)
    assert (time.perf_counter() - begin) / 20 < 0.005


@pytest.mark.parametrize(
    ("rows", "steps", "values"),
    [
        (65_535, 65_535, 36),
        (4, MAX_SAMPLE_STEPS + 1, 36),
        (4, 0, 0),
        (0, 9, 0),
        (3, 12, 36),
        (9, 4, 36),
        (4, 9, 35),
        (4, 9, 37),
    ],
)
def test_a_sample_holds_what_it_announces(rows, steps, values):
    data = struct.pack("<2H", rows, steps) + pack(np.full(values, 7, "<u2").tobytes())
    with pytest.raises(InvalidSpeakerError):
        decode_sample(base16384.encode(data))


@pytest.mark.parametrize(
    "codes",
    [
        np.full((4, 9), 625),
        np.full((4, 9), -1),
        np.full((4, 9), 1.5),
        np.full(36, 7),
        np.full((4, 0), 7),
        np.full((4, MAX_SAMPLE_STEPS + 1), 7),
    ],
)
def test_sample_codes_out_of_range_are_refused(codes):
    with pytest.raises(InvalidSpeakerError):
        encode_sample(codes)


def test_a_packed_code_out_of_range_is_refused():
    codes = np.full((4, 9), 7, dtype="<u2")
    codes[3, 8] = 625
    with pytest.raises(InvalidSpeakerError, match="0 to 624"):
        decode_sample(base16384.encode(struct.pack("<2H", 4, 9) + pack(codes.tobytes())))


def test_the_longest_sample_round_trips():
    codes = np.random.default_rng(0).integers(0, 625, (4, MAX_SAMPLE_STEPS), dtype=np.uint16)
    np.testing.assert_array_equal(decode_sample(encode_sample(codes)), codes)


def test_a_sample_code_is_told_from_a_speaker_code(golden):
    with pytest.raises(InvalidSpeakerError, match="code of a sample"):
        decode_speaker(golden[0]["spk_smp_str"])


def test_ten_thousand_mutations_are_read_or_refused():
    rng = np.random.default_rng(1)
    codes = [encode_speaker(sample_speaker(1)), encode_sample(rng.integers(0, 625, (4, 60)))]
    alphabet = "一丁蘁淰㴁㴆㵢\u8dff\u8e00A0 😀"
    num_refused = 0
    for number in range(10_000):
        text = list(codes[number % 2])
        for _ in range(int(rng.integers(1, 4))):
            place, kind = int(rng.integers(len(text))), int(rng.integers(3))
            if kind == 0:
                text[place] = chr(0x4E00 + int(rng.integers(0x4000)))
            elif kind == 1:
                text[place] = alphabet[int(rng.integers(len(alphabet)))]
            else:
                del text[place : place + int(rng.integers(1, 30))]
        for decode in (decode_speaker, decode_sample):
            try:
                decoded = decode("".join(text))
            except InvalidSpeakerError:
                num_refused += 1
                continue
            assert np.isfinite(decoded).all()
            assert decoded.shape == (768,) or decoded.max() < 625
    assert num_refused > 5_000


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    for decode in (decode_speaker, decode_sample):
        with pytest.raises(InvalidSpeakerError):
            decode(text)
