import errno
import hashlib
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chattts_api.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    InvalidSpeakerError,
    NotFoundError,
    ServerError,
    SetupError,
    StorageFullError,
)
from chattts_api.types import SamplePrompt, Voice
from chattts_api.voices import store as store_module
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.record import ID_PATTERN
from chattts_api.voices.store import MAX_VOICES_PER_OWNER, VoiceStore

SPEAKER = sample_speaker(5)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "voices"


@pytest.fixture
def store(folder):
    return VoiceStore(folder)


def voice(name="小明", **fields):
    return Voice(id="", name=name, **({"speaker": SPEAKER} | fields))


def files(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.name != ".lock")


def test_a_saved_voice_is_there_after_a_restart(folder, store):
    sample = SamplePrompt(np.arange(36, dtype=np.uint16).reshape(4, 9), "样本 transcript")
    saved = store.save(
        voice("Ä 小明-2", sample=sample, gender="male", language="zh", description="温和"),
        "ann",
    )
    found = VoiceStore(folder).get(saved.id, "ann")
    assert found.owner == "ann"
    assert abs(found.created - time.time()) < 5
    for name in ("id", "name", "gender", "language", "description"):
        assert getattr(found.voice, name) == getattr(saved, name)
    np.testing.assert_array_equal(found.voice.speaker, SPEAKER)
    np.testing.assert_array_equal(found.voice.sample.codes, sample.codes)
    assert found.voice.sample.text == "样本 transcript"


def test_ids_are_random_and_name_the_file(folder, store):
    ids = {store.save(voice(f"voice {n}")).id for n in range(20)}
    assert len(ids) == 20
    assert all(ID_PATTERN.fullmatch(i) for i in ids)
    assert files(folder) == sorted(f"{i}.json" for i in ids)


def test_a_deleted_voice_is_gone(folder, store):
    saved = store.save(voice(), "ann")
    store.delete(saved.id, "ann")
    assert files(folder) == []
    with pytest.raises(NotFoundError):
        VoiceStore(folder).get(saved.id, "ann")
    with pytest.raises(NotFoundError):
        store.delete(saved.id, "ann")
    assert store.save(voice(), "ann").id != saved.id


def test_one_owner_never_sees_anothers(store):
    saved = store.save(voice(), "ann")
    for owner in (None, "bob", "", "Ann"):
        assert store.list(owner) == []
        assert store.find("小明", owner) is None
        for method in (store.get, store.delete):
            with pytest.raises(NotFoundError):
                method(saved.id, owner)
    assert store.get(saved.id, "ann").voice.id == saved.id


def test_a_shared_voice_is_used_by_all_and_deleted_by_none_of_them(store):
    saved = store.save(voice())
    assert [v.id for v in store.list("ann")] == [saved.id]
    with pytest.raises(ForbiddenError):
        store.delete(saved.id, "ann")
    store.delete(saved.id)
    assert store.list() == []


@pytest.mark.parametrize("again", ["Amélie", "ame\u0301lie".upper(), " amélie "])
def test_a_name_is_taken_once(store, again):
    store.save(voice("Amélie"), "ann")
    with pytest.raises(ConflictError):
        store.save(voice(again), "ann")
    store.save(voice(again), "bob")


@pytest.mark.parametrize("name", ["alloy", "ALLOY", "清荷", "qinghe"])
def test_built_in_names_are_taken(store, name):
    with pytest.raises(ConflictError):
        store.save(voice(name), "ann")


NAMES = [
    *("", " ", ".", "..", "../x", "..%2fx", "..%252fx", "/etc/x", "a/b", "a\\b", "C:", "-", "_"),
    *("a\0b", "\n", "a\nb", "\x1b[31m", "x" * 65, "x" * 300, "a\u202eb", "a\u200bb", "\ufeffa"),
    *("\ud800", "seed:1", "<b>", "a;b", "a|b", "$(x)", "`x`", "%00", "a*", "?", '"', "'", "\u2028"),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_are_none(folder, store, name):
    with pytest.raises(InvalidRequestError) as caught:
        store.save(voice(name))
    assert caught.value.param == "name"
    with pytest.raises(NotFoundError):
        store.get(name)
    with pytest.raises(NotFoundError):
        store.delete(name)
    assert store.find(name) is None
    assert files(folder) == []


@pytest.mark.parametrize("name", ["CON", "小明", "Zoë", "अमित", "a.b", "A-1 (旁白)", "あきら", "7"])
def test_names_of_any_script(folder, store, name):
    saved = store.save(voice(name))
    assert VoiceStore(folder).find(name).id == saved.id
    assert files(folder) == [f"{saved.id}.json"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"speaker": None}, InvalidRequestError),
        ({"speaker": np.zeros(768, np.float16)}, InvalidSpeakerError),
        ({"speaker": np.ones(767, np.float16)}, InvalidSpeakerError),
        ({"gender": "other"}, InvalidRequestError),
        ({"language": "../zh"}, InvalidRequestError),
        ({"description": "x" * 501}, InvalidRequestError),
        ({"description": "\ud800"}, InvalidRequestError),
        ({"sample": SamplePrompt(np.full((4, 9), 625), "x")}, InvalidSpeakerError),
        ({"sample": SamplePrompt(np.full((4, 9), 5), " ")}, InvalidRequestError),
    ],
)
def test_fields_out_of_bounds_are_refused(folder, store, fields, error):
    with pytest.raises(error):
        store.save(voice(**fields))
    assert files(folder) == []


def test_at_most_200_voices_of_one_owner(store, monkeypatch):
    assert MAX_VOICES_PER_OWNER == 200
    monkeypatch.setattr(store_module, "MAX_VOICES_PER_OWNER", 3)
    saved = [store.save(voice(f"v {n}"), "ann") for n in range(3)]
    with pytest.raises(InvalidRequestError, match="At most 3"):
        store.save(voice("v 4"), "ann")
    store.save(voice("v 4"), "bob")
    store.delete(saved[0].id, "ann")
    store.save(voice("v 4"), "ann")


def sealed(path, **changes):
    """Change fields of a voice file and seal it again."""
    fields = json.loads(path.read_bytes()) | changes
    del fields["sha256"]
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    fields["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(fields), encoding="utf-8")


CORRUPTIONS = {
    "empty": lambda p: p.write_bytes(b""),
    "half": lambda p: p.write_bytes(p.read_bytes()[:500]),
    "bit": lambda p: p.write_bytes(p.read_bytes().replace(b'"speaker": "', b'"speaker": "A', 1)),
    "renamed": lambda p: p.write_bytes(p.read_bytes().replace("小明".encode(), b"Eve")),
    "binary": lambda p: p.write_bytes(bytes(range(256))),
    "list": lambda p: p.write_bytes(b"[]"),
    "deep": lambda p: p.write_bytes(b"[" * 60_000),
    "huge": lambda p: p.write_bytes(b" " * 70_000),
    "link": lambda p: (p.unlink(), p.symlink_to("/etc/hostname")),
    "pipe": lambda p: (p.unlink(), os.mkfifo(p)),
    "folder": lambda p: (p.unlink(), p.mkdir()),
    "other id": lambda p: sealed(p, id="v_" + "A" * 22),
    "bad id": lambda p: sealed(p, id="../x"),
    "bad name": lambda p: sealed(p, name="../x"),
    "zero": lambda p: sealed(p, speaker="AAAA" * 512),
    "not base64": lambda p: sealed(p, speaker="é"),
    "number": lambda p: sealed(p, speaker=5),
    "bad sample": lambda p: sealed(p, sample={"codes": "AAAAAAA=", "text": "x"}),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_a_corrupt_file_is_set_aside_and_the_others_load(folder, store, corrupt, caplog):
    kept, lost = store.save(voice("kept")), store.save(voice())
    corrupt(folder / f"{lost.id}.json")
    with caplog.at_level(logging.WARNING):
        again = VoiceStore(folder)
    assert [v.id for v in again.list()] == [kept.id]
    assert not (folder / f"{lost.id}.json").exists()
    assert [p.name.endswith(f"{lost.id}.json") for p in (folder / "quarantine").iterdir()] == [True]
    assert lost.id in caplog.text
    again.save(voice())


def test_a_later_format_is_left_alone(folder, store, caplog):
    kept, later = store.save(voice("kept")), store.save(voice())
    path = folder / f"{later.id}.json"
    sealed(path, format=99)
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        again = VoiceStore(folder)
        assert [v.id for v in again.list()] == [kept.id]
    assert path.read_bytes() == before
    assert later.id in caplog.text
    assert "99" in caplog.text


def test_two_stores_of_one_folder_see_each_others_voices(folder, store):
    other = VoiceStore(folder)
    saved = store.save(voice())
    assert other.find(saved.id).name == "小明"
    with pytest.raises(ConflictError):
        other.save(voice())
    other.delete(saved.id)
    assert store.list() == []
    store.save(voice())
    assert len(other.list()) == 1


def test_of_many_savers_of_one_name_one_wins(folder):
    stores = [VoiceStore(folder) for _ in range(4)]

    def attempt(number):
        try:
            return stores[number % 4].save(voice(f"name {number // 10}")).id
        except ConflictError:
            return None

    with ThreadPoolExecutor(16) as pool:
        ids = [i for i in pool.map(attempt, range(100)) if i]
    assert len(ids) == 10
    assert files(folder) == sorted(f"{i}.json" for i in ids)
    assert {v.id for v in VoiceStore(folder).list()} == set(ids)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failed_write_leaves_nothing(folder, store, monkeypatch, code):
    def fail(descriptor):
        raise OSError(code, "no")

    kept = store.save(voice("kept"))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ServerError if code == errno.EIO else StorageFullError) as caught:
        store.save(voice())
    assert str(folder) not in caught.value.message
    monkeypatch.undo()
    assert files(folder) == [f"{kept.id}.json"]
    store.save(voice())


def test_a_full_disk_is_storage_full(folder, store):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(StorageFullError):
            store.save(voice())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert files(folder) == []
    store.save(voice())


def test_a_folder_that_cannot_be_is_a_setup_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="CHATTTS_DATA_DIR"):
        VoiceStore(tmp_path / "file" / "voices")


def test_half_written_files_are_swept_at_the_start(folder, store):
    (folder / "v_half.tmp").write_text("{")
    VoiceStore(folder)
    assert files(folder) == []


SAVER = """
import sys
from pathlib import Path
from chattts_api.types import Voice
from chattts_api.voices.generator import sample_speaker
from chattts_api.voices.store import VoiceStore

store = VoiceStore(Path(sys.argv[1]))
for number in range(150):
    saved = store.save(Voice("", f"{sys.argv[2]} {number}", sample_speaker(number)), sys.argv[2])
    print(saved.id, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(folder):
    acknowledged = []
    for attempt in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, folder, f"owner {attempt}"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        first = process.stdout.readline()
        time.sleep(0.004 * attempt + 0.001)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        acknowledged += [(f"owner {attempt}", line) for line in (first + rest).split()]
    store = VoiceStore(folder)
    assert len(acknowledged) >= 6
    for owner, voice_id in acknowledged:
        stored = store.get(voice_id, owner)
        number = int(stored.voice.name.rsplit(" ", 1)[1])
        np.testing.assert_array_equal(stored.voice.speaker, sample_speaker(number))
    assert not (folder / "quarantine").exists()
    assert all(name.endswith(".json") for name in files(folder))
    store.save(replace(voice(), name="still works"))
