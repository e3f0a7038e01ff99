"""An archive that is brought to another store (`pylog archive sync`): at each moment an archive, in the end the same. The file takes about 10 s."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.cuts import read_cut
from pylog_spark.archive.store.cutting import create_cut, verify_cut
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import prune
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.archive.store.syncing import Synced, sync
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import values
from tests.archive.test_store import Cut, Faulty
from tests.directories.support import Row, stored
from tests.harness.runs import mostly_long
from tests.mirror.support import write, write_in_transactions

SMALL = CopyOptions(segment_bytes=4_000, frame_bytes=1_500)
LATER_MS = 1 << 45


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a topic ``events`` of two partitions, with transactions."""
    with LocalBroker(tmp_path_factory.mktemp("source")) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topic("events", 2)
        write(running.bootstrap_servers, "events", values(0, 1_200), batch_num_messages=10)
        write_in_transactions(running.bootstrap_servers, "events", "some", 4)
        yield running


@pytest.fixture(scope="module")
def original(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the topic."""
    url = tmp_path_factory.mktemp("archive") / "original"
    grow(broker, url)
    return url


@pytest.fixture
def url(original: Path, tmp_path: Path) -> Path:
    """An archive of the topic that a test may change."""
    return Path(shutil.copytree(original, tmp_path / "archive"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where it is brought to."""
    return tmp_path / "target"


def grow(broker: LocalBroker, url: Path) -> int:
    """Copy what is new of the topic; how many segments."""
    with Admin(broker.bootstrap_servers) as admin:
        return len(list(copy_topic(admin, open_archive(str(url), create=True), "events", SMALL, pytest.fail)))


def synced(url: Path, target: Path, objects: Objects | None = None) -> list[Synced]:
    """Bring all to the target, or to `objects` in its place."""
    open_archive(str(target), create=True)
    return [*sync(open_archive(str(url)), objects or Objects(str(target)), lambda _bytes: None)]


def rows(url: Path) -> list[Row]:
    """What a read of the archive gives."""
    return stored(url, "events", isolationLevel="read_committed")


def segments(url: Path) -> set[str]:
    """All objects of segments."""
    return {path.name for path in url.rglob("*.pylog.zst")}


@pytest.mark.long  # a copy: test_store.py
@pytest.mark.parametrize("done", mostly_long([False, True], False))
def test_a_sync_that_was_cut_at_any_write_leaves_an_archive_and_goes_on(url: Path, target: Path, done: bool) -> None:
    whole, log = rows(url), ArchiveLog(str(url))
    writes = 0
    while True:
        shutil.rmtree(target, ignore_errors=True)
        open_archive(str(target), create=True)
        writes += 1
        try:
            synced(url, target, Faulty(str(target), writes, done))
        except Cut:
            there = ArchiveLog(str(target))
            (topic,) = there.describe_topics(["events"])
            ends = [] if topic["error"] else [there.manifest("events", number).end for number in range(2)]
            assert all(end in (0, log.manifest("events", number).end) for number, end in enumerate(ends))
            if ends:
                assert rows(target) == [row for row in whole if row.offset < ends[row.partition]]
            before = segments(target)
            copied = sum(each.copied for each in synced(url, target))
            assert copied == len(segments(url)) - len(before), "an object that is there is not copied again"
            assert rows(target) == whole, f"cut at write {writes}"
        else:
            break
    assert writes > 20
    assert segments(target) == segments(url)


def test_what_is_new_comes_and_what_was_pruned_goes(broker: LocalBroker, url: Path, target: Path) -> None:
    synced(url, target)
    assert [each.copied for each in synced(url, target)] == [0, 0]
    write(broker.bootstrap_servers, "events", values(1_200, 1_400), batch_num_messages=10)
    assert grow(broker, url) > 2
    (stored_topic,) = ArchiveLog(str(url)).stored_topics(["events"])
    objects = open_archive(str(url))
    assert sum(each.segments for each in prune(objects, "events", stored_topic.topic_id, 1, LATER_MS, grace_s=-1)) > 2
    lacking = segments(url) - segments(target)
    assert sum(each.copied for each in synced(url, target)) == len(lacking) > 0
    assert segments(target) == segments(url)
    assert rows(target) == rows(url)


def test_an_object_that_was_half_written_is_written_again_and_a_damaged_one_is_not_copied(
    url: Path, target: Path
) -> None:
    synced(url, target)
    for each in target.rglob("manifest-*"):
        each.unlink()
    harmed = sorted(target.rglob("*.pylog.zst"))[3]
    harmed.write_bytes(harmed.read_bytes()[:100])
    assert sum(each.copied for each in synced(url, target)) == 1
    assert rows(target) == rows(url)
    shutil.rmtree(target)
    damaged = sorted(url.rglob("*.pylog.zst"))[3]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(LogError, match=f"{damaged.name} is damaged, and is not copied"):
        synced(url, target)
    damaged.unlink()
    with pytest.raises(FileNotFoundError, match=damaged.name):
        synced(url, target)


def test_a_target_to_which_others_write_is_left_as_it_is(broker: LocalBroker, url: Path, target: Path) -> None:
    synced(url, target)
    write(broker.bootstrap_servers, "events", values(2_000, 2_200), batch_num_messages=10)
    assert grow(broker, target) > 0
    there = rows(target)
    with pytest.raises(LogError, match="has a segment at offset") as refused:
        synced(url, target)
    assert refused.value.kind == "FENCED"
    assert rows(target) == there


@pytest.mark.parametrize("is_own", [False, True])
def test_cuts_come_too(url: Path, target: Path, is_own: bool) -> None:
    objects, log = open_archive(str(url)), ArchiveLog(str(url))
    cut = create_cut(objects, log, "kept", "events", {0: (100, 300)}, is_own=False)
    if is_own:
        # As of a compacted topic: the cut has an archive in it.
        shutil.copytree(url / "topics", url / "cuts" / "kept" / "topics")
        shutil.copy(url / "pylog-archive.json", url / "cuts" / "kept")
        document = url / "cuts" / "kept.json"
        document.write_text(document.read_text().replace('"is_own": false', '"is_own": true'))
        shutil.rmtree(url / "topics")
    synced(url, target)
    found = ArchiveLog(str(target), cut="kept")
    assert read_cut(open_archive(str(target)), "kept").is_own is is_own
    verify_cut(found, cut)
