"""An archive of logs: what it gives is what a client of the brokers saw, whatever was cut, lost, doubled or damaged meanwhile."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.pruning import prune
from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from tests.directories.support import LEVELS, Row, consumed, stored
from tests.harness import runs
from tests.harness.runs import mostly_long
from tests.harness.waiting import until
from tests.mirror.support import ends, write, write_in_transactions
from tests.mirror.test_mirror import CODECS

DAMAGES = runs.rounds("PYLOG_ARCHIVE_DAMAGES", 40, 1_000)
RANGES = runs.rounds("PYLOG_ARCHIVE_RANGES", 15, 300)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
#: So small that each test has many segments of several frames.
SMALL = CopyOptions(segment_bytes=4_000, frame_bytes=1_500)


def copied(admin: Admin, url: Path, name: str, options: CopyOptions = SMALL, objects: Objects | None = None) -> int:
    """Copy what is new of a topic; how many segments."""
    archive = objects or open_archive(str(url), create=True)
    return len(list(copy_topic(admin, archive, name, options, lambda line: pytest.fail(line))))


@pytest.fixture
def url(tmp_path: Path) -> Path:
    """Where an archive is to be."""
    return tmp_path / "archive"


@pytest.fixture
def filled(source: str, admin: Admin, name: str) -> str:
    """A topic of two partitions with all codecs and transactions."""
    admin.create_topic(name, 2, config={"segment.bytes": "1048576"})
    drawn = random.Random(1)
    for codec in CODECS:
        values = (f"{codec}-{drawn.random()}" for _ in range(300))
        write(source, name, values, compression_type=codec, batch_num_messages=20)
        write_in_transactions(source, name, f"{name}-{codec}", 4)
    return name


def seen(source: str, name: str, level: str = "read_committed") -> list[Row]:
    """What a client sees of a topic with two partitions."""
    return consumed(source, name, 2, level)


@pytest.mark.parametrize("level", LEVELS)
def test_an_archive_gives_the_rows_that_a_client_saw(
    source: str, admin: Admin, filled: str, url: Path, level: str
) -> None:
    assert copied(admin, url, filled) > 8
    rows = stored(url, filled, isolationLevel=level)
    assert rows == seen(source, filled, level)
    assert len(rows) > 1_500


def test_each_copy_brings_what_is_new_once(source: str, admin: Admin, filled: str, url: Path) -> None:
    copied(admin, url, filled)
    assert copied(admin, url, filled) == 0
    for number in range(5):
        write(source, filled, (f"more-{number}-{each}" for each in range(50)))
        write_in_transactions(source, filled, f"{filled}-more-{number}", 2)
        assert copied(admin, url, filled) > 0
    assert stored(url, filled, isolationLevel="read_committed") == seen(source, filled)
    assert copied(admin, url, filled, CopyOptions(least_bytes=1 << 30)) == 0


def test_too_little_waits_for_more(source: str, admin: Admin, filled: str, url: Path) -> None:
    assert copied(admin, url, filled, CopyOptions(least_bytes=1 << 30)) == 0
    assert stored(url, filled) == []
    assert copied(admin, url, filled, CopyOptions(least_bytes=1_000)) == 2


def test_any_range_gives_its_part_of_the_rows(source: str, admin: Admin, filled: str, url: Path) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    copied(admin, url, filled)
    rows = [row for row in seen(source, filled) if row.partition == 1]
    end = ends(source, filled, 2, "read_committed")[1]
    for _ in range(RANGES):
        first, last = sorted(drawn.randrange(end + 1) for _ in range(2))
        between = f'{{"{filled}": {{"1": %d}}}}'
        asked = {"startingOffsets": between % first, "endingOffsets": between % last}
        found = stored(url, filled, assign=f'{{"{filled}": [1]}}', isolationLevel="read_committed", **asked)
        assert found == [row for row in rows if first <= row.offset < last], (first, last)


def test_times_are_those_that_a_broker_finds(source: str, admin: Admin, name: str, url: Path) -> None:
    admin.create_topic(name, 1)
    drawn = random.Random(2)
    producer = Producer(
        {"bootstrap.servers": source, "batch.num.messages": 7, "linger.ms": 1, "enable.idempotence": True}
    )
    stamp = 1_700_000_000_000
    for number in range(400):
        # Not in order: the first that is not older is looked for.
        stamp += drawn.randrange(-60, 100)
        producer.produce(name, f"{number}", timestamp=stamp)
    assert producer.flush(30) == 0
    copied(admin, url, name)
    log = ArchiveLog(str(url))
    for time in [0, *(1_700_000_000_000 + drawn.randrange(-100, 10_000) for _ in range(RANGES * 4)), 1 << 50]:
        (wanted,) = admin.offsets([(name, 0, time)])
        assert log.list_offsets([(name, 0, time)]) == [tuple(wanted)], time


class Cut(OSError):
    """The storage fails, or the process is killed."""


class Faulty(Objects):
    """An archive whose writes fail from the given one on, before or after it was done."""

    def __init__(self, url: str, writes: int, done: bool) -> None:
        super().__init__(url)
        self._left, self._done = writes, done

    def put(self, name: str, content: bytes) -> None:
        self._fail(lambda: super(Faulty, self).put(name, content))

    def delete(self, name: str) -> None:
        self._fail(lambda: super(Faulty, self).delete(name))

    def _fail(self, change: Callable[[], None]) -> None:
        self._left -= 1
        if self._left < 0:
            raise Cut
        if self._left > 0 or self._done:
            change()
        if self._left == 0:
            raise Cut


@pytest.mark.parametrize("done", mostly_long([False, True], False))
def test_a_copy_that_was_cut_at_any_write_goes_on_and_nothing_is_missing_or_doubled(
    source: str, admin: Admin, name: str, url: Path, done: bool
) -> None:
    admin.create_topic(name, 2)
    write(source, name, (f"{random.Random(number).random():050}" for number in range(400)), batch_num_messages=10)
    write_in_transactions(source, name, name, 4)
    rows = seen(source, name)
    open_archive(str(url), create=True)
    cuts = 0
    while True:
        shutil.rmtree(url / "topics", ignore_errors=True)
        cuts += 1
        try:
            copied(admin, url, name, objects=Faulty(str(url), cuts, done))
        except Cut:
            there = [row for row in rows if _is_there(url, name, row)]
            assert not there or stored(url, name, isolationLevel="read_committed") == there
            copied(admin, url, name)
            assert stored(url, name, isolationLevel="read_committed") == rows, f"cut at write {cuts}"
        else:
            break
    assert cuts > 10


def _is_there(url: Path, name: str, row: Row) -> bool:
    """Whether the row is before the archive's end."""
    log = ArchiveLog(str(url))
    (topic,) = log.describe_topics([name])
    return topic["error"] is None and row.offset < log.manifest(name, row.partition).end


def test_of_two_copies_the_later_one_goes_on_and_the_other_one_stops(
    source: str, admin: Admin, filled: str, url: Path
) -> None:
    objects = open_archive(str(url), create=True)
    first = copy_topic(admin, objects, filled, SMALL, pytest.fail)
    next(first)
    second = copy_topic(admin, objects, filled, SMALL, pytest.fail)
    next(second)
    with pytest.raises(LogError, match="has begun later") as refused:
        list(first)
    assert refused.value.kind == "FENCED"
    list(second)
    assert stored(url, filled, isolationLevel="read_committed") == seen(source, filled)


def test_damage_is_an_error_or_left_out_by_name(source: str, admin: Admin, filled: str, url: Path, caplog: Any) -> None:
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    copied(admin, url, filled)
    rows = stored(url, filled)
    refused = 0
    for _ in range(DAMAGES):
        path = drawn.choice(sorted(url.rglob("*.pylog.zst")))
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[drawn.randrange(len(content))] ^= 1 << drawn.randrange(8)
        path.write_bytes(damaged)
        error = _error_of(lambda: stored(url, filled), rows)
        if error is not None:
            refused += 1
            assert error.condition == "PYLOG_CORRUPT_BATCH"
            assert path.name in error.sentence
        path.write_bytes(content)
    assert refused > DAMAGES * 0.8
    path = sorted(url.rglob("*.pylog.zst"))[0]
    damaged = bytearray(content := path.read_bytes())
    damaged[20] ^= 1
    path.write_bytes(damaged)
    left = stored(url, filled, ignoreCorruptBatches="true")
    assert 0 < len(left) < len(rows)
    assert set(left) < set(rows)
    assert f"{path.name} of the archive cannot be read" in caplog.text
    path.write_bytes(content)


def _error_of(read: Callable[[], list[Row]], wanted: list[Row]) -> PylogError | None:
    """Why the rows cannot be read; None when they are those that are wanted."""
    try:
        found = read()
    except PylogError as error:
        return error
    assert found == wanted
    return None


def test_records_that_were_removed_before_they_were_archived_are_named(
    source: str, admin: Admin, name: str, url: Path
) -> None:
    admin.create_topic(name, 1)
    write(source, name, (f"{number}" for number in range(100)))
    copied(admin, url, name)
    write(source, name, (f"{number}" for number in range(100, 200)))
    admin.delete_records([(name, 0, 150)])
    said: list[str] = []
    list(copy_topic(admin, open_archive(str(url)), name, SMALL, said.append))
    assert said == [f"partition 0 of topic {name}: the offsets 100 to 149 were removed before they were archived"]
    with pytest.raises(PylogError, match="nothing of the offsets 100 to 149"):
        stored(url, name)
    found = stored(url, name, ignoreCorruptBatches="true")
    assert [row.offset for row in found] == [*range(100), *range(150, 200)]


def test_what_is_pruned_is_gone_and_the_rest_is_there(source: str, admin: Admin, name: str, url: Path) -> None:
    admin.create_topic(name, 1)
    producer = Producer(
        {"bootstrap.servers": source, "batch.num.messages": 10, "linger.ms": 1, "enable.idempotence": True}
    )
    for number in range(1_000):
        producer.produce(name, f"{number:0200}", timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0
    assert copied(admin, url, name, CopyOptions(segment_bytes=2_000, frame_bytes=1_000)) > 5
    made = ArchiveLog(str(url))
    (topic,) = made.stored_topics(None)
    before = made.manifest(name, 0)
    # What a copy leaves that is killed before it names its object.
    left = url / f"topics/{name}/{topic.topic_id or 'none'}/0/{7:020d}-0000abcd.pylog.zst"
    left.write_bytes(b"half")
    objects = open_archive(str(url))
    (pruned,) = prune(objects, name, topic.topic_id, 1, 1_700_000_000_500, grace_s=1_000)
    assert (pruned.unnamed, left.exists()) == (0, True)
    assert pruned.segments > 1
    rows = stored(url, name)
    assert [row.offset for row in rows] == list(range(pruned.start, 1_000))
    assert pruned.start <= 500
    assert pruned.bytes == sum(each.size for each in before.segments[: pruned.segments])
    (pruned,) = prune(objects, name, topic.topic_id, 1, None, grace_s=-1)
    assert (pruned.unnamed, left.exists(), stored(url, name)) == (1, False, rows)
    with pytest.raises(PylogError) as refused:
        stored(url, name, startingOffsets=f'{{"{name}": {{"0": 0}}}}')
    assert refused.value.condition in ("PYLOG_DATA_LOSS", "PYLOG_OFFSET_OUT_OF_RANGE")
    # A reader that planned before finds that its objects are gone.
    with pytest.raises(LogError) as gone:
        list(made.pieces(name, 0, 0, 1_000))
    assert gone.value.kind == "OFFSET_OUT_OF_RANGE"


def test_a_topic_that_was_made_again_is_another_one_and_the_newer_is_read(
    source: str, admin: Admin, name: str, url: Path
) -> None:
    admin.create_topic(name, 1)
    write(source, name, ["old"])
    copied(admin, url, name)
    admin.delete_topics([name])
    until(lambda: not _exists(admin, name), "the topic is gone")
    admin.create_topic(name, 1)
    write(source, name, ["new"])
    copied(admin, url, name)
    assert [row.value for row in stored(url, name)] == [b"new"]


def _exists(admin: Admin, name: str) -> bool:
    return any(topic.error is None for topic in admin.topics([name]))


def test_what_cannot_be_archived_or_read_is_one_sentence(source: str, admin: Admin, name: str, url: Path) -> None:
    admin.create_topic(name, 1, config={"cleanup.policy": "compact"})
    with pytest.raises(LogError, match=r"is compacted: .*pylog archive export"):
        copied(admin, url, name)
    with pytest.raises(LogError, match=r"is no archive: it has no pylog-archive\.json"):
        ArchiveLog(str(url.parent))
    with pytest.raises(PylogError, match=f"{url} has no topic 'nothing'"):
        stored(url, "nothing")
    with pytest.raises(PylogError, match="cannot be opened"):
        stored(Path("x"), name, path="weird://somewhere/there")
    (url / "pylog-archive.json").write_text('{"format": "pylog-archive-store", "version": 2}')
    with pytest.raises(LogError, match="has version 2, and this pylog reads 1"):
        ArchiveLog(str(url))
