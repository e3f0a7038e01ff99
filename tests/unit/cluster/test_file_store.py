"""The file store: compare-and-set, whole documents after a kill, damage named by file."""

import os

import pytest

from pylog_spark.cluster.store import Guard, RevisionConflict, Stored, StoreError, Write
from pylog_spark.cluster.store import file as file_store
from pylog_spark.cluster.store.file import DIRECTORY, FileStore


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


def test_a_document_is_created_changed_and_deleted_at_its_revision(store):
    assert store.get("topics/a") is None
    assert store.compare_and_set("topics/a", b"1", 0) == 1
    assert store.compare_and_set("topics/a", b"2", 1) == 2
    assert store.get("topics/a") == Stored(b"2", 2)
    store.delete("topics/a", 2)
    assert store.get("topics/a") is None


def test_a_change_at_another_revision_is_a_conflict_and_changes_nothing(store):
    store.compare_and_set("a", b"1", 0)
    for revision in (0, 2):
        with pytest.raises(RevisionConflict, match="revision 1"):
            store.compare_and_set("a", b"x", revision)
        with pytest.raises(RevisionConflict):
            store.delete("a", revision)
    assert store.get("a") == Stored(b"1", 1)


def test_documents_survive_the_process(store, tmp_path):
    store.compare_and_set("topics/a", b"1", 0)
    again = FileStore(tmp_path)
    assert again.get("topics/a") == Stored(b"1", 1)
    assert again.get("brokers/1/registration") is None


def test_listing_gives_only_documents_below_the_prefix(store, tmp_path):
    for path in ("topics/b", "topics/a", "cluster", "brokers/1/config"):
        store.compare_and_set(path, b"{}", 0)
    (tmp_path / DIRECTORY / "topics" / "document.tmp").write_bytes(b"left by a kill")
    assert store.paths("topics/") == ["topics/a", "topics/b"]
    assert store.paths("brokers/") == ["brokers/1/config"]
    assert store.paths("none/") == []


def test_the_longest_topic_name_fits_into_a_file_name(store):
    store.compare_and_set("topics/" + "x" * 249, b"1", 0)
    assert store.paths("topics/") == ["topics/" + "x" * 249]


def test_every_flipped_byte_is_noticed_and_named(store, tmp_path):
    store.compare_and_set("topics/a", b'{"version":1}', 0)
    file = tmp_path / DIRECTORY / "topics" / "a.json"
    whole = file.read_bytes()
    for index in range(len(whole) - 1):
        file.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        with pytest.raises(StoreError, match=r"a\.json is damaged"):
            store.get("topics/a")


def test_every_cut_is_noticed(store, tmp_path):
    store.compare_and_set("a", b'{"version":1}', 0)
    file = tmp_path / DIRECTORY / "a.json"
    whole = file.read_bytes()
    for length in range(len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"a\.json is damaged"):
            store.get("a")


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
def test_a_kill_or_failure_before_the_rename_leaves_the_old_document(store, monkeypatch, step):
    store.compare_and_set("a", b"old", 0)

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(file_store.os, step, fail)
        with pytest.raises(StoreError, match="No space left"):
            store.compare_and_set("a", b"new", 1)
    assert store.get("a") == Stored(b"old", 1)
    assert store.compare_and_set("a", b"new", 1) == 2


def test_a_document_is_synced_before_it_replaces_the_old_one_and_its_directory_after(store, monkeypatch):
    store.compare_and_set("a", b"old", 0)
    calls = []
    for name in ("fsync", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(file_store.os, name, lambda *a, name=name, real=real: (calls.append(name), real(*a))[1])
    store.compare_and_set("a", b"new", 1)
    assert calls == ["fsync", "rename", "fsync"]


@pytest.mark.parametrize("path", ["", "..", "../a", "a/../b", "/a", "a//b", "a/", "."])
def test_a_path_cannot_leave_the_store(store, path):
    with pytest.raises(StoreError, match="not a path"):
        store.compare_and_set(path, b"", 0)


def test_several_writes_happen_only_when_all_revisions_and_the_guard_hold(store):
    store.compare_and_set("guard", b"1", 0)
    store.compare_and_set("a", b"1", 0)
    for writes, guard in [
        ([Write("a", b"2", 1), Write("b", b"2", 1)], Guard("guard", 1)),
        ([Write("a", b"2", 1)], Guard("guard", 2)),
    ]:
        with pytest.raises(RevisionConflict):
            store.write_all(writes, guard)
    assert store.get_all(["a", "b"]) == [Stored(b"1", 1), None]
    assert store.write_all([Write("a", None, 1), Write("b", b"2", 0)], Guard("guard", 1), b"notice") == [0, 1]
    assert store.get_all(["a", "b"]) == [None, Stored(b"2", 1)]
