import io
import json
import os
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import torch

from chattts_api.errors import (
    ContentTooLargeError,
    InvalidRequestError,
    InvalidSpeakerError,
    SpeechError,
    UnsupportedMediaTypeError,
)
from chattts_api.types import SamplePrompt, Voice
from chattts_api.voices.codes import encode_sample, encode_speaker
from chattts_api.voices.exchange import EXPORT_FORMATS, MAX_FILE_BYTES, export_voice, import_voice
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.torch_import import read_torch_file

SPEAKER = sample_speaker(11)
VOICE = Voice("v_1", "小明", SPEAKER, None, "male", "zh", "温和")
SAMPLE = SamplePrompt(np.arange(36, dtype=np.uint16).reshape(4, 9), "样本")


def npy(array, **kwargs):
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def tensors(**arrays):
    return safetensors.numpy.save(arrays)


@pytest.mark.parametrize("file_format", EXPORT_FORMATS)
def test_what_is_exported_can_be_imported(file_format):
    exported = export_voice(VOICE, file_format)
    voice = import_voice(exported.data, "given")
    np.testing.assert_array_equal(voice.speaker, SPEAKER)
    assert voice.name == ("小明" if file_format == "json" else "given")
    assert exported.suffix.startswith(".")
    if file_format == "json":
        assert (voice.gender, voice.language, voice.description) == ("male", "zh", "温和")


def test_json_carries_a_sample():
    voice = import_voice(export_voice(replace(VOICE, speaker=None, sample=SAMPLE), "json").data)
    assert voice.speaker is None
    assert voice.sample.text == "样本"
    np.testing.assert_array_equal(voice.sample.codes, SAMPLE.codes)


@pytest.mark.parametrize("file_format", [f for f in EXPORT_FORMATS if f != "json"])
def test_a_sample_needs_json(file_format):
    with pytest.raises(InvalidRequestError, match="json"):
        export_voice(replace(VOICE, speaker=None, sample=SAMPLE), file_format)


def test_export_formats_are_a_closed_list():
    with pytest.raises(InvalidRequestError):
        export_voice(VOICE, "../pt")


VALUES = [float(v) for v in SPEAKER]
READABLE = {
    "code": encode_speaker(SPEAKER).encode(),
    "code with mark": b"\xef\xbb\xbf" + encode_speaker(SPEAKER).encode() + b"\r\n",
    "npy f4": npy(SPEAKER.astype(np.float32)),
    "npy f8 big endian": npy(SPEAKER.astype(">f8")),
    "npy row": npy(SPEAKER[None]),
    "csv lines": "\n".join(map(repr, VALUES)).encode(),
    "csv spaces": " ".join(map(repr, VALUES)).encode(),
    "csv brackets": ("[" + " ".join(map(repr, VALUES)) + " ").encode(),
    "safetensors f4": tensors(spk=SPEAKER.astype(np.float32)),
    "safetensors among others": tensors(spk=SPEAKER[None], other=np.zeros(3, np.float32)),
    "json list": json.dumps(VALUES).encode(),
    "json row": json.dumps([VALUES]).encode(),
    "json embedding": json.dumps({"embedding": VALUES, "name": 5}).encode(),
    "json code": json.dumps({"spk_emb": encode_speaker(SPEAKER)}).encode(),
}


@pytest.mark.parametrize("data", READABLE.values(), ids=READABLE)
def test_files_of_other_tools_are_read(data):
    voice = import_voice(data, "x")
    np.testing.assert_array_equal(voice.speaker, SPEAKER)
    assert voice.name == "x"


def test_bfloat16_is_read():
    header = json.dumps({"a": {"dtype": "BF16", "shape": [768], "data_offsets": [0, 1536]}})
    halves = (SPEAKER.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    voice = import_voice(struct.pack("<Q", len(header)) + header.encode() + halves)
    np.testing.assert_allclose(voice.speaker, SPEAKER, rtol=1 / 128, atol=1e-6)


def fake_npy(descr, shape, body):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


REFUSED = {
    "empty": b"",
    "words": b"hello world",
    "binary": bytes(range(128, 256)),
    "bad code": "蘁淰".encode() * 100,
    "sample code": encode_sample(SAMPLE.codes).encode(),
    "767 numbers": ",".join(map(repr, VALUES[:-1])).encode(),
    "768 words": b"a " * 768,
    "nan": ("nan " + "1 " * 767).encode(),
    "overflow": ("1e999 " + "1 " * 767).encode(),
    "above float16": ("70000 " + "1 " * 767).encode(),
    "all zero": b"0 " * 768,
    "npy shape": npy(np.ones((768, 2))),
    "npy integers": npy(np.ones(768, int)),
    "npy complex": npy(np.ones(768, complex)),
    "npy objects": npy(np.array([{}] * 768, dtype=object), allow_pickle=True),
    "npy bomb": fake_npy("'<f8'", "(1099511627776,)", b""),
    "npy short": fake_npy("'<f8'", "(768,)", bytes(100)),
    "npy long": fake_npy("'<f2'", "(768,)", bytes(9_999)),
    "npy code": fake_npy("__import__('os').system('true')", "(768,)", bytes(1536)),
    "npy version": b"\x93NUMPY\x09\x00" + bytes(2000),
    "safetensors none": tensors(a=np.ones(3)),
    "safetensors two": tensors(a=SPEAKER, b=SPEAKER),
    "safetensors integers": tensors(a=np.ones(768, int)),
    "safetensors half": tensors(a=SPEAKER)[:-10],
    "safetensors bomb": struct.pack("<Q", 70)
    + b'{"a":{"dtype":"F16","shape":[4398046511104],"data_offsets":[0,1536]}}  ',
    "json object": b"{}",
    "json word": b'{"speaker": "alloy"}',
    "json number": b'{"speaker": 5}',
    "json nan": b'{"speaker": [' + b"NaN," * 767 + b"1]}",
    "json huge integers": b"[" + b"9" * 3_000 + b"]",
    "json strings": json.dumps(["x"] * 768).encode(),
    "json ragged": json.dumps([VALUES, [1]]).encode(),
    "json deep": b"[" * 100_000 + b"]" * 100_000,
    "json deep object": b'{"speaker":' * 20_000,
    "json half": b'{"speaker": [1,',
    "json sample": b'{"sample": {"code": 5}}',
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused(data):
    with pytest.raises(InvalidSpeakerError) as caught:
        import_voice(data)
    assert len(caught.value.message) < 300


def test_files_have_a_size():
    with pytest.raises(ContentTooLargeError):
        import_voice(b"1," * MAX_FILE_BYTES)


def torch_bytes(value, **kwargs):
    buffer = io.BytesIO()
    torch.save(value, buffer, **kwargs)
    return buffer.getvalue()


@pytest.mark.parametrize("legacy", [False, True])
def test_torch_files_are_never_read_from_the_network(legacy):
    data = torch_bytes(torch.ones(768), _use_new_zipfile_serialization=not legacy)
    with pytest.raises(UnsupportedMediaTypeError, match="voices import"):
        import_voice(data)


def test_mutated_files_are_read_or_refused():
    rng = np.random.default_rng(2)
    originals = [export_voice(VOICE, f).data for f in EXPORT_FORMATS]
    for number in range(3_000):
        data = bytearray(originals[number % len(originals)])
        for _ in range(int(rng.integers(1, 5))):
            data[int(rng.integers(min(len(data), 300)))] = int(rng.integers(256))
        if number % 3 == 0:
            del data[int(rng.integers(len(data))) :]
        try:
            voice = import_voice(bytes(data))
        except SpeechError:
            continue
        assert voice.speaker.shape == (768,)
        assert np.isfinite(voice.speaker).all()


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize(
    "content",
    [
        torch.from_numpy(SPEAKER[None].copy()),
        {"spk_emb": encode_speaker(SPEAKER), "seed": 5},
    ],
    ids=["tensor", "code"],
)
def test_torch_files_are_converted_offline(tmp_path, content):
    path = tmp_path / "voice.pt"
    path.write_bytes(torch_bytes(content))
    np.testing.assert_array_equal(read_torch_file(path), SPEAKER)


def sparse(shape):
    return torch.sparse_coo_tensor([[0]], [1.0], shape, check_invariants=True)


def deflated_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(64 << 20))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        lambda marker: torch_bytes({"x": Evil(marker)}),
        lambda marker: deflated_zip(),
        lambda marker: torch_bytes(
            torch.sparse_coo_tensor([[0]], [1.0], (1 << 40,), check_invariants=True)
        ),
        lambda marker: torch_bytes(torch.ones(1).expand(1 << 32)),
        lambda marker: bytes(2 << 20),
    ],
    ids=["code", "zip bomb", "sparse", "view", "large"],
)
def test_torch_bombs_are_refused(tmp_path, make):
    marker, path = tmp_path / "executed", tmp_path / "voice.pt"
    path.write_bytes(make(marker))
    with pytest.raises(InvalidSpeakerError, match="cannot be used"):
        read_torch_file(path)
    assert not marker.exists()


def test_a_missing_torch_file_is_told(tmp_path):
    with pytest.raises(InvalidSpeakerError, match="no such"):
        read_torch_file(tmp_path / "voice.pt")
