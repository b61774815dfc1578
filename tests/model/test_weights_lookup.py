import hashlib
import logging
import os

import pytest

from chattts_api.errors import SetupError, WeightsError
from chattts_api.model.hub import (
    HOW_TO_GET_WEIGHTS,
    download_folder,
    find_weights,
    verify_weights,
)
from chattts_api.model.hub_source import HUGGING_FACE, HubSource, hub_source
from chattts_api.model.weights_layout import GPT, HUB_REVISION, OFFICIAL_FILES, OfficialFile


@pytest.mark.parametrize(
    ("endpoint", "kind", "address"),
    [
        (None, "huggingface", HUGGING_FACE),
        ("", "huggingface", HUGGING_FACE),
        ("https://hf-mirror.com/", "huggingface", "https://hf-mirror.com"),
        ("modelscope", "modelscope", "https://www.modelscope.cn"),
        ("https://www.modelscope.cn", "modelscope", "https://www.modelscope.cn"),
        ("https://notmodelscope.cn", "huggingface", "https://notmodelscope.cn"),
    ],
)
def test_endpoints(endpoint, kind, address):
    assert hub_source(endpoint) == HubSource(address, kind)


@pytest.mark.parametrize("endpoint", ["hf-mirror.com", "file:///etc", "ftp://x", "https://", "x"])
def test_endpoints_that_are_none(endpoint):
    with pytest.raises(SetupError, match="HF_ENDPOINT"):
        hub_source(endpoint)


def make_official(folder):
    """Files of the official sizes, without their bytes."""
    for file in OFFICIAL_FILES:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / file.name).open("wb") as stream:
            stream.truncate(file.num_bytes)
    return folder


def test_the_users_own_folder_comes_first(tmp_path):
    make_official(download_folder(tmp_path) / "asset")
    own = make_official(tmp_path / "own" / "asset")
    assert find_weights(tmp_path / "own", tmp_path, ()) == own
    assert find_weights(own, tmp_path, ()) == own
    (own / GPT).unlink()
    with pytest.raises(WeightsError, match=GPT):
        find_weights(own, tmp_path, ())
    with pytest.raises(WeightsError, match="does not exist"):
        find_weights(tmp_path / "nowhere", tmp_path, ())


@pytest.mark.parametrize(
    "place",
    [
        f"hub/models--2Noise--ChatTTS/snapshots/{HUB_REVISION}",
        "hub/models--2Noise--ChatTTS/snapshots/another",
        "hub/AI-ModelScope/ChatTTS",
        "hub/models/AI-ModelScope/ChatTTS",
    ],
)
def test_hub_caches_are_found(tmp_path, place):
    caches = [tmp_path / "none", tmp_path / "hub"]
    assert find_weights(None, tmp_path, caches) is None
    blobs = make_official(tmp_path / "blobs")
    folder = tmp_path / place / "asset"
    for file in OFFICIAL_FILES:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.name).symlink_to(blobs / file.name)
    assert find_weights(None, tmp_path, caches) == folder
    own = make_official(download_folder(tmp_path) / "asset")
    assert find_weights(None, tmp_path, caches) == own
    os.truncate(own / GPT, 5)
    assert find_weights(None, tmp_path, caches) == folder
    (folder / GPT).unlink()
    assert find_weights(None, tmp_path, caches) is None


def test_verify_names_both_hashes(tmp_path, caplog):
    official = []
    for file in OFFICIAL_FILES:
        path = tmp_path / file.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.name.encode())
        official.append(
            OfficialFile(file.name, len(file.name), hashlib.sha256(file.name.encode()).hexdigest())
        )
    with caplog.at_level(logging.WARNING):
        assert all(r.is_official for r in verify_weights(tmp_path, "strict", official))
    assert caplog.text == ""
    (tmp_path / GPT).write_bytes(b"fine-tuned")
    expected, found = official[-1].sha256, hashlib.sha256(b"fine-tuned").hexdigest()
    with caplog.at_level(logging.WARNING):
        reports = verify_weights(tmp_path, "warn", official)
    assert [r.name for r in reports if not r.is_official] == [GPT]
    assert expected in caplog.text
    assert found in caplog.text
    with pytest.raises(WeightsError, match="strict") as caught:
        verify_weights(tmp_path, "strict", official)
    assert expected in str(caught.value)
    assert found in str(caught.value)
    (tmp_path / GPT).unlink()
    with pytest.raises(WeightsError, match=GPT):
        verify_weights(tmp_path, "warn", official)


def test_the_advice_names_what_to_do():
    for word in ("weights download", "HF_ENDPOINT", "CHATTTS_MODEL_DIR"):
        assert word in HOW_TO_GET_WEIGHTS
