import hashlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from chattts_api.errors import WeightsError
from chattts_api.model import download_job
from chattts_api.model.fetching import DownloadCancelledError, FetchLimits
from chattts_api.model.hub import (
    download_weights,
)
from chattts_api.model.hub_source import HubSource, hub_source
from chattts_api.model.weights_layout import (
    GPT,
    GPT_CONFIG,
    HUB_REVISION,
    OfficialFile,
)
from tests.model.hub_server import serve_hub

QUICK = FetchLimits(connect_s=1, read_s=1, first_answer_s=1, num_attempts=3, backoff_s=0.01)
SIZES = {GPT_CONFIG: 700, "Vocos.safetensors": 40_000, GPT: 90_000}
BIG = f"asset/{GPT}"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Every chunk is reported; no proxy in between."""
    monkeypatch.setattr(download_job, "REPORT_EVERY_S", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def contents():
    rng = np.random.default_rng(4)
    return {f"asset/{name}": rng.bytes(size) for name, size in SIZES.items()}


@pytest.fixture(scope="module")
def files(contents):
    return tuple(
        OfficialFile(name, size, hashlib.sha256(contents[f"asset/{name}"]).hexdigest())
        for name, size in SIZES.items()
    )


@pytest.fixture
def hub(contents):
    with serve_hub(dict(contents)) as server:
        yield server


@pytest.fixture
def fetch(hub, files, tmp_path):
    """Downloads into tmp_path/w from the stand-in."""

    def run(**options):
        defaults = {"source": hub_source(hub.endpoint), "limits": QUICK, "files": files}
        return download_weights(tmp_path / "w", **(defaults | options))

    return run


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def assert_whole(folder, contents):
    assert names(folder) == sorted(SIZES)
    for name in SIZES:
        assert (folder / name).read_bytes() == contents[f"asset/{name}"]


def assert_nothing_false(folder, contents):
    """Whatever bears a file's own name is that file."""
    for name in names(folder):
        if not name.endswith(".part"):
            assert (folder / name).read_bytes() == contents[f"asset/{name}"]


def test_a_download_is_whole_and_shows_its_progress(hub, fetch, contents, tmp_path):
    seen = []
    hub.always[BIG] = "slow"
    folder = fetch(on_progress=seen.append)
    assert folder == tmp_path / "w" / "asset"
    assert_whole(folder, contents)
    total = sum(SIZES.values())
    done = [p.num_bytes for p in seen]
    assert done == sorted(done)
    assert done[-1] == total
    assert len(set(done)) > 10
    assert {p.total_bytes for p in seen} == {total}
    assert {p.file for p in seen} == set(SIZES)
    assert [path for path, _ in hub.requests] == [
        f"/2Noise/ChatTTS/resolve/{HUB_REVISION}/asset/{name}" for name in SIZES
    ]


def test_what_is_there_is_not_fetched_again(hub, fetch, contents):
    folder = fetch()
    hub.requests.clear()
    (folder / GPT).unlink()
    seen = []
    assert_whole(fetch(on_progress=seen.append), contents)
    assert len(hub.requests) == 1
    assert seen[0].num_bytes > SIZES["Vocos.safetensors"]
    hub.requests.clear()
    fetch()
    assert hub.requests == []


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"x" + b[1:], lambda b: b"" * 9])
def test_a_damaged_file_is_fetched_again(hub, fetch, contents, damage):
    folder = fetch()
    (folder / GPT).write_bytes(damage(contents[BIG]))
    assert_whole(fetch(), contents)


def test_a_cut_connection_is_resumed(hub, fetch, contents):
    hub.faults[BIG] = ["cut"] * 6
    assert_whole(fetch(), contents)
    assert hub.sent[BIG] == SIZES[GPT]
    assert hub.requests[3] == (hub.requests[2][0], "bytes=45000-")


def test_a_part_of_an_earlier_run_is_resumed(hub, fetch, contents, tmp_path):
    part = tmp_path / "w" / "asset" / f"{GPT}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(contents[BIG][:60_000])
    assert_whole(fetch(), contents)
    assert hub.sent[BIG] == 30_000


@pytest.mark.parametrize("size", [0, 1, 90_000])
def test_a_part_of_any_size_is_continued(hub, fetch, contents, tmp_path, size):
    part = tmp_path / "w" / "asset" / f"{GPT}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(contents[BIG][:size])
    assert_whole(fetch(), contents)
    assert hub.sent[BIG] == SIZES[GPT] - size


@pytest.mark.parametrize("stale", [b"x" * 60_000, b"x" * 90_000, b"x" * 99_999])
def test_a_part_of_something_else_is_not_trusted(fetch, contents, tmp_path, stale):
    part = tmp_path / "w" / "asset" / f"{GPT}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(stale)
    assert_whole(fetch(), contents)


@pytest.mark.parametrize("faults", [["cut"], ["cut", "other-range"], ["cut", "unknown-range"]])
@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize("has_lengths", [True, False])
def test_servers_that_do_not_resume(hub, fetch, contents, faults, has_ranges, has_lengths):
    hub.faults[BIG] = list(faults)
    hub.has_ranges, hub.has_lengths = has_ranges, has_lengths
    assert_whole(fetch(), contents)


def test_a_server_that_always_cuts_without_resuming_ends_as_an_error(hub, fetch, contents):
    hub.always[BIG] = "cut"
    hub.has_ranges = False
    with pytest.raises(WeightsError, match="could not be fetched"):
        fetch()
    assert 3 <= len([p for p, _ in hub.requests if p.endswith(GPT)]) <= 5


def test_a_stalled_connection_is_resumed(hub, fetch, contents):
    hub.faults[BIG] = ["stall"]
    assert_whole(fetch(), contents)
    assert hub.sent[BIG] == SIZES[GPT]


def test_a_slow_server_is_waited_for(hub, fetch, contents):
    hub.always[BIG] = "slow"
    assert_whole(fetch(), contents)
    assert len(hub.requests) == 3


@pytest.mark.parametrize("fault", ["wrong", "short", "long"])
@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_wrong_file_is_fetched_once_more(hub, fetch, contents, fault, has_lengths, caplog):
    hub.faults[BIG] = [fault]
    hub.has_lengths = has_lengths
    with caplog.at_level(logging.WARNING):
        assert_whole(fetch(), contents)
    assert ("once more" in caplog.text) == (fault != "short" or has_lengths)


@pytest.mark.parametrize("fault", ["wrong", "long"])
def test_a_wrong_file_twice_is_an_error(hub, fetch, contents, files, tmp_path, fault):
    hub.always[BIG] = fault
    with pytest.raises(WeightsError, match=GPT) as caught:
        fetch()
    if fault == "wrong":
        flipped = hashlib.sha256(bytes(b ^ 1 for b in contents[BIG])).hexdigest()
        assert flipped in str(caught.value)
        assert files[-1].sha256 in str(caught.value)
    assert names(tmp_path / "w" / "asset") == sorted(set(SIZES) - {GPT})
    assert len([p for p, _ in hub.requests if p.endswith(GPT)]) == 2


@pytest.mark.parametrize("fault", ["missing", "forbidden"])
def test_a_refusal_is_an_error_at_once(hub, fetch, fault):
    hub.always[f"asset/{GPT_CONFIG}"] = fault
    with pytest.raises(WeightsError, match="answered 40"):
        fetch()
    assert len(hub.requests) == 1


def test_a_busy_server_is_asked_again(hub, fetch, contents):
    hub.faults[BIG] = ["busy", "busy"]
    assert_whole(fetch(), contents)
    hub.faults[BIG] = ["busy"] * 9
    (Path(fetch()) / GPT).unlink()
    with pytest.raises(WeightsError, match="503"):
        fetch()


def test_redirects_are_followed_with_their_range(hub, fetch, contents):
    hub.faults[BIG] = ["redirect", "cut", "redirect"]
    assert_whole(fetch(), contents)
    assert hub.sent[BIG] == SIZES[GPT]
    assert hub.requests[-1] == (f"/elsewhere/1/2/3/{BIG}", "bytes=45000-")


def test_redirects_have_an_end(hub, fetch):
    hub.always[BIG] = "redirect"
    with pytest.raises(WeightsError, match="redirect"):
        fetch()


def test_modelscope_is_asked_in_its_own_words(hub, fetch, contents):
    assert_whole(fetch(source=HubSource(hub.endpoint, "modelscope")), contents)
    assert hub.requests[0][0] == (
        "/api/v1/models/AI-ModelScope/ChatTTS/repo?Revision=master&FilePath=asset%2Fgpt%2Fconfig.json"
    )


def test_no_network_is_told_quickly(fetch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        begin = time.monotonic()
        with pytest.raises(WeightsError, match="cannot be reached"):
            fetch(source=hub_source(f"http://127.0.0.1:{unused.getsockname()[1]}"))
    assert time.monotonic() - begin < 2


def test_a_name_service_that_hangs_is_not_waited_for(fetch, monkeypatch):
    released = threading.Event()

    def hang(*_args, **_kwargs):
        released.wait(10)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    begin = time.monotonic()
    with pytest.raises(WeightsError, match="no answer"):
        fetch(source=hub_source("http://hub.invalid"))
    assert time.monotonic() - begin < 2
    released.set()


def test_a_server_that_accepts_and_is_silent_is_not_waited_for(fetch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with pytest.raises(WeightsError):
            fetch(source=hub_source(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        assert time.monotonic() - begin < 2


def test_a_download_can_be_stopped_and_goes_on_later(hub, fetch, contents, tmp_path):
    hub.always[BIG] = "slow"
    cancel = threading.Event()

    def stop(progress):
        if progress.file == GPT:
            cancel.set()

    begin = time.monotonic()
    with pytest.raises(DownloadCancelledError):
        fetch(on_progress=stop, cancel=cancel)
    assert time.monotonic() - begin < 2
    assert (tmp_path / "w" / "asset" / f"{GPT}.part").exists()
    assert_nothing_false(tmp_path / "w" / "asset", contents)
    hub.always.clear()
    wait_until_free(fetch)
    assert_whole(tmp_path / "w" / "asset", contents)


def wait_until_free(fetch):
    """The thread that was left behind lets go of the folder at its next chunk."""
    deadline = time.monotonic() + 5
    while True:
        try:
            return fetch()
        except WeightsError as error:
            assert "is running" in str(error)  # noqa: PT017
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_two_downloads_of_one_folder_do_not_mix(hub, fetch, contents):
    hub.always[BIG] = "slow"
    outcomes = []

    def run():
        try:
            outcomes.append(fetch())
        except WeightsError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("is running" in str(outcome) for outcome in outcomes) == 1
    assert_whole(fetch(), contents)


DOWNLOADER = """
import sys
from pathlib import Path
from chattts_api.model.hub import download_weights
from chattts_api.model.hub_source import hub_source
from chattts_api.model.weights_layout import OfficialFile

files = [OfficialFile(*(int(w) if w.isdigit() and len(w) < 9 else w for w in line.split()))
         for line in sys.argv[3:]]
download_weights(Path(sys.argv[1]), hub_source(sys.argv[2]), files=files)
"""


def test_a_killed_download_leaves_nothing_false(hub, fetch, contents, files, tmp_path):
    hub.always[BIG] = "slow"
    lines = [f"{f.name} {f.num_bytes} {f.sha256}" for f in files]
    command = [sys.executable, "-c", DOWNLOADER, tmp_path / "w", hub.endpoint, *lines]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    while not hub.sent[BIG] > 20_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    folder = tmp_path / "w" / "asset"
    assert_nothing_false(folder, contents)
    assert not (folder / GPT).exists()
    hub.always.clear()
    assert_whole(fetch(), contents)


def test_a_disk_without_room_is_told_before(hub, fetch, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(WeightsError, match="CHATTTS_DATA_DIR"):
        fetch()
    assert hub.requests == []


def test_a_disk_that_fills_is_told(fetch, monkeypatch, contents, tmp_path):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WeightsError, match="No room"):
        fetch()
    assert_nothing_false(tmp_path / "w" / "asset", contents)


def test_a_folder_that_cannot_be_is_told(fetch, tmp_path):
    (tmp_path / "w").write_text("")
    with pytest.raises(WeightsError, match="CHATTTS_DATA_DIR"):
        fetch()
