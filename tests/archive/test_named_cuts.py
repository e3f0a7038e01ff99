"""Cuts of an archive: what is read years later is what was there, whatever was pruned, compacted or deleted meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.cuts import Cut, all_cuts, read_cut
from pylog_spark.archive.store.cutting import create_cut, delete_cut, verify_cut
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import Pruned, prune
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from tests.directories.support import Row, consumed, stored
from tests.mirror.support import environment, write

SMALL = CopyOptions(segment_bytes=2_000, frame_bytes=1_000)
BEGIN_MS = 1_700_000_000_000
LATER_MS = 1 << 45


@pytest.fixture
def url(tmp_path: Path) -> Path:
    """Where the archive is."""
    return tmp_path / "archive"


@pytest.fixture
def archived(source: str, admin: Admin, name: str, url: Path) -> str:
    """A topic of 600 records, a millisecond apart, in an archive of many segments."""
    admin.create_topic(name, 1)
    # A new topic's leader may refuse the first batches: what is sent again stays in its order.
    in_order = {"enable.idempotence": True}
    producer = Producer({"bootstrap.servers": source, "batch.num.messages": 10, "linger.ms": 1, **in_order})
    for number in range(600):
        producer.produce(name, f"{number:0200}", timestamp=BEGIN_MS + number)
    assert producer.flush(30) == 0
    assert len(list(copy_topic(admin, open_archive(str(url), create=True), name, SMALL, pytest.fail))) > 4
    return name


def made(url: Path, topic: str, start: int, end: int, name: str = "kept") -> Cut:
    """Cut a range of partition 0."""
    objects = open_archive(str(url))
    return create_cut(objects, ArchiveLog(str(url)), name, topic, {0: (start, end)}, is_own=False)


def pruned(objects: Objects, topic: str) -> Pruned:
    """Remove as much as can be."""
    found = ArchiveLog("", objects=objects).stored_topics([topic])[0]
    (done,) = prune(objects, topic, found.topic_id, 1, LATER_MS, grace_s=-1)
    return done


def offsets(rows: list[Row]) -> list[int]:
    return [row.offset for row in rows]


def test_a_cut_is_read_as_it_was_whatever_is_pruned(url: Path, archived: str) -> None:
    rows = stored(url, archived)
    cut = made(url, archived, 250, 500)
    assert [*all_cuts(open_archive(str(url)))] == [cut]
    done = pruned(open_archive(str(url)), archived)
    assert 0 < done.start <= 250
    assert stored(url, archived, cut="kept") == rows[250:500]
    asked = {"startingTimestamp": BEGIN_MS + 300, "endingTimestamp": BEGIN_MS + 550}
    assert stored(url, archived, cut="kept", **asked) == rows[300:500]
    verify_cut(ArchiveLog(str(url), cut="kept"), cut)
    delete_cut(open_archive(str(url)), cut)
    assert pruned(open_archive(str(url)), archived).start > 500
    with pytest.raises(PylogError, match="The archive has no cut 'kept'; there are: none"):
        stored(url, archived, cut="kept")


def test_a_cut_that_was_changed_is_not_what_it_was(url: Path, archived: str) -> None:
    cut = made(url, archived, 0, 600)
    other = made(url, archived, 0, 300, "other")
    assert cut.sha256 != other.sha256
    with pytest.raises(LogError, match="is not what it was: its SHA-256 is"):
        verify_cut(ArchiveLog(str(url)), Cut(**{**_fields(cut), "ranges": other.ranges}))


def _fields(cut: Cut) -> dict[str, Any]:
    return {name: getattr(cut, name) for name in Cut.__dataclass_fields__}


class Hooked(Objects):
    """An archive in which something happens before one of the operations."""

    def __init__(self, url: str, at: int, what: Any) -> None:
        super().__init__(url)
        self.left, self._what = at, what

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._what()

    def files(self, folder: str) -> list[str]:
        self._step()
        return super().files(folder)

    def put(self, name: str, content: bytes) -> None:
        self._step()
        super().put(name, content)

    def delete(self, name: str) -> None:
        self._step()
        super().delete(name)

    def read(self, name: str) -> bytes:
        self._step()
        return super().read(name)


def test_a_cut_that_is_made_while_its_records_are_pruned_has_them_or_is_refused(url: Path, archived: str) -> None:
    rows = stored(url, archived)
    whole = url.with_name("whole")
    shutil.copytree(url, whole)
    kept = refused = step = 0
    while True:
        step += 1
        shutil.rmtree(url)
        shutil.copytree(whole, url)
        outcome: list[bool] = []

        def cut(outcome: list[bool] = outcome) -> None:
            try:
                made(url, archived, 10, 300)
            except LogError as error:
                assert error.kind == "OFFSET_OUT_OF_RANGE"  # noqa: PT017 - another one is a failure.
                outcome.append(False)
            else:
                outcome.append(True)

        fenced = _is_fenced(Hooked(str(url), step, cut), archived)
        if not outcome:
            break
        assert not fenced or outcome[0]
        if outcome[0]:
            kept += 1
            assert stored(url, archived, cut="kept") == rows[10:300], f"step {step}"
        else:
            refused += 1
            assert [*all_cuts(open_archive(str(url)))] == [], f"step {step}"
    assert kept > 5
    assert refused > 2


def _is_fenced(objects: Objects, topic: str) -> bool:
    """Prune; whether another process has begun meanwhile."""
    try:
        pruned(objects, topic)
    except LogError as error:
        if error.kind != "FENCED":
            raise
        return True
    return False


@pytest.mark.long  # pruned: above
def test_a_cut_of_a_compacted_topic_has_its_records_though_compaction_goes_on(
    source: str, admin: Admin, name: str, url: Path
) -> None:
    admin.create_topic(name, 2, config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
    write(source, name, (f"{number}" for number in range(200)))
    rows = consumed(source, name, 2, "read_committed")
    words = [sys.executable, "-m", "pylog_spark", "cut"]
    at = {**environment(), "PYLOG_BOOTSTRAP_SERVERS": source}

    def run(*given: str, code: int = 0) -> str:
        done = subprocess.run([*words, *given, "-a", str(url)], env=at, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert run("create", "first", "--topic", name).startswith(f"Cut first: 200 offsets of topic {name}, SHA-256 ")
    admin.delete_topics([name])
    assert stored(url, name, cut="first", isolationLevel="read_committed") == rows
    assert run("verify", "first").startswith("Cut first is what it was: SHA-256 ")
    assert run("list").split()[:4] == ["CUT", "TOPIC", "PARTITIONS", "OFFSETS"]
    assert "There is no" not in run("list", "--json")
    with pytest.raises(PylogError, match="has no topic"):
        stored(url, name)
    assert run("delete", "first") == "Deleted cut first.\n"
    assert [*url.rglob("*.pylog.zst")] == []
    assert "has no cut 'first'" in run("verify", "first", code=1)


def test_offsets_or_the_time_at_which_it_was_say_what_a_cut_has(url: Path, source: str, archived: str) -> None:
    rows = stored(url, archived)

    def create(*given: str, code: int = 0) -> str:
        words = [sys.executable, "-m", "pylog_spark", "cut", "create", *given, "-t", archived, "-a", str(url)]
        at = {**environment(), "PYLOG_BOOTSTRAP_SERVERS": source}
        done = subprocess.run(words, env=at, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    create("some", "--offsets", '{"0": [250, 500]}')
    assert stored(url, archived, cut="some") == rows[250:500]
    create("then", "--at", str(BEGIN_MS + 300))
    assert stored(url, archived, cut="then") == rows[:300]
    assert "Give --offsets, or --since and --until" in create("x", "--offsets", '{"0": [0, 1]}', "--at", "1", code=2)
    assert f"Topic {archived} has no partition 3" in create("x", "--offsets", '{"3": [0, 1]}', code=2)
    assert "has nothing of the offsets 600 to 699" in create("x", "--offsets", '{"0": [500, 700]}', code=1)
    for wrong in ("{", '{"0": [2, 1]}', '{"0": [0, true]}'):
        assert 'It is a JSON object such as {"0": [250, 500]}' in create("x", "--offsets", wrong, code=2).replace(
            "\n", " "
        )
    assert [each.name for each in all_cuts(open_archive(str(url)))] == ["some", "then"]


def test_what_cannot_be_cut_is_one_sentence(url: Path, archived: str) -> None:
    with pytest.raises(LogError, match="is no name of a cut"):
        made(url, archived, 0, 1, "../other")
    made(url, archived, 0, 1)
    with pytest.raises(LogError, match="There is a cut 'kept' already"):
        made(url, archived, 0, 1)
    with pytest.raises(LogError, match="has nothing of the offsets 600 to 699"):
        made(url, archived, 500, 700, "more")
    assert read_cut(open_archive(str(url)), "kept").ranges == ((0, 0, 1),)
    with pytest.raises(PylogError, match="is no archive, so there is no cut"):
        stored(url.parent, archived, cut="kept")
    with pytest.raises(PylogError, match="The option cut needs the option path"):
        stored("", archived, cut="kept", path="", **{"kafka.bootstrap.servers": "b:1"})
