"""What brokers have archived is read by Spark's tasks in the archive itself (`archiveReads`): the same rows, and the brokers are asked for the rest.

Readers run in the test's own process. The file takes about 30 s.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pylog_spark._native import Client
from pylog_spark.client import Admin
from pylog_spark.source.origin import Archive
from pylog_spark.testing import LocalBroker
from tests.archive.brokers import EARLIEST_LOCAL, KEPT_RECORDS, SHORT, begun, offset, until_short, values
from tests.directories.support import LEVELS
from tests.harness import runs
from tests.mirror.support import ends, write, write_in_transactions
from tests.reading.streams import Checkpoint, Query, batch_reader, read
from tests.spark.support import Topic

ROUNDS = runs.rounds("PYLOG_ARCHIVE_ROUNDS", 8, 200)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")


class Archived(NamedTuple):
    """A topic of two partitions, with transactions, of which the broker itself has only the end; from where on, by partition."""

    topic: Topic
    broker: LocalBroker
    archive: Path
    local: list[int]
    ends: list[int]


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    """A topic whose beginning is in the archive of its broker."""
    archive = tmp_path_factory.mktemp("archive") / "cold"
    with begun(tmp_path_factory.mktemp("broker"), archive) as broker, Admin(broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        admin.create_topic("events", 2, config=SHORT)
        write(servers, "events", values(0, 500), batch_num_messages=10)
        write_in_transactions(servers, "events", "some", 20)
        write(servers, "events", values(500, 900), batch_num_messages=10)
        for partition in range(2):
            until_short(admin, "events", 300, partition)
        # So that where the broker begins stays as it is.
        admin.alter_configs("topic", "events", {"local.retention.bytes": "-1"})
        local = [offset(admin, "events", EARLIEST_LOCAL, partition) for partition in range(2)]
        topic = Topic(None, servers, Client({"bootstrap.servers": servers}), "events", 2)
        yield Archived(topic, broker, archive, local, ends(servers, "events", 2))


def rows_of(made: Any, tasks: list[Any]) -> list[tuple[int, int, bytes]]:
    """The rows of tasks, each as Spark carries it: partition, offset, value."""
    found = [
        row for task in tasks for batch in made.read(pickle.loads(pickle.dumps(task))) for row in batch.to_pylist()
    ]
    return sorted((row["partition"], row["offset"], row["value"]) for row in found)


def rows(topic: Topic, **options: Any) -> list[tuple[int, int, bytes]]:
    """The rows of a batch read."""
    made = batch_reader(topic, "value", "partition", "offset", **options)
    return rows_of(made, made.partitions())


def cold(tasks: list[Any]) -> list[tuple[int, int, int]]:
    """What tasks read in the archive: partition, start, end."""
    return sorted(
        (part.partition.partition, part.start, part.end)
        for task in tasks
        for place, (part, _) in enumerate(task.ranges)
        if place in task.archived
    )


def spans(topic: Topic, first: int, last: int) -> dict[str, str]:
    """The options of a read of the offsets [first, last) of both partitions."""
    return {
        f"{edge}Offsets": json.dumps({topic.name: dict.fromkeys("01", each)})
        for edge, each in (("starting", first), ("ending", last))
    }


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_those_that_the_broker_gives(archived: Archived, level: str) -> None:
    topic, _, _, local, _ = archived
    whole = rows(topic, isolationLevel=level, archiveReads="never")
    assert len(whole) > 900
    made = batch_reader(topic, "value", "partition", "offset", isolationLevel=level)
    tasks = made.partitions()
    assert cold(tasks) == [(0, 0, local[0]), (1, 0, local[1])]
    assert rows_of(made, tasks) == whole
    assert rows(topic, isolationLevel=level, limit=700) == whole[:700]
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    for _ in range(ROUNDS):
        first, last = sorted(drawn.randrange(min(archived.ends)) for _ in range(2))
        expected = [row for row in whole if first <= row[1] < last]
        assert rows(topic, isolationLevel=level, **spans(topic, first, last)) == expected


def test_a_task_of_archived_records_asks_no_broker(tmp_path: Path) -> None:
    with begun(tmp_path / "broker", tmp_path / "archive") as broker, Admin(broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        admin.create_topic("events", 1, config=SHORT)
        write(servers, "events", values(0, 400), batch_num_messages=10)
        until_short(admin, "events", 400 - KEPT_RECORDS)
        topic = Topic(None, servers, Client({"bootstrap.servers": servers}), "events", 1)
        whole = rows(topic, archiveReads="never")
        made = batch_reader(topic, "value", "partition", "offset")
        tasks = [task for task in made.partitions() if task.archived]
    ((_, _, end),) = cold(tasks)
    assert end >= 400 - KEPT_RECORDS
    # The broker has stopped.
    assert rows_of(made, tasks) == whole[:end]


def test_never_asks_brokers_for_all_of_it(archived: Archived) -> None:
    assert cold(batch_reader(archived.topic, "value", archiveReads="never").partitions()) == []


def test_a_read_of_what_the_broker_has_itself_does_not_open_the_archive(archived: Archived) -> None:
    # All of it: a few offsets may be of aborted transactions alone.
    starts = {str(partition): start for partition, start in enumerate(archived.local)}
    here = {"startingOffsets": json.dumps({archived.topic.name: starts})}
    whole = rows(archived.topic, archiveReads="never", **here)
    assert whole
    away = archived.archive.rename(archived.archive.with_name("away"))
    try:
        made = batch_reader(archived.topic, "value", "partition", "offset", **here)
        tasks = made.partitions()
        assert cold(tasks) == []
        assert rows_of(made, tasks) == whole
    finally:
        away.rename(archived.archive)


@pytest.mark.parametrize("prefetched", ["2m", "0"])
def test_a_stream_goes_from_the_archive_to_the_broker(archived: Archived, prefetched: str) -> None:
    topic = archived.topic
    checkpoint = Checkpoint()
    query = read(topic, checkpoint, maxOffsetsPerTrigger=150, prefetchMaxBytes=prefetched)
    assert sorted(query.values) == sorted(row[2].decode() for row in rows(topic, archiveReads="never"))
    assert len(checkpoint.offsets) > 8
    # The reader at the end of the log asks no more than before.
    running = Query(topic, checkpoint)
    assert not running.trigger()
    running.stop()


def test_an_archive_that_the_driver_cannot_open_leaves_all_to_the_brokers_with_a_line(
    archived: Archived, caplog: pytest.LogCaptureFixture
) -> None:
    topic = archived.topic
    whole = rows(topic, archiveReads="never")
    away = archived.archive.rename(archived.archive.with_name("away"))
    try:
        made = batch_reader(topic, "value", "partition", "offset")
        tasks = made.partitions()
    finally:
        away.rename(archived.archive)
    assert cold(tasks) == []
    assert rows_of(made, tasks) == whole
    (line,) = [record.getMessage() for record in caplog.records if "archiveReads" in record.getMessage()]
    assert line.startswith(
        f"{archived.archive} is no archive: it has no pylog-archive.json. Old records are read through the brokers"
    )


def damage(archive: Path, kind: str) -> None:
    """Harm the copy of an archive behind its first objects."""
    objects = sorted(archive.rglob("*.pylog.zst"))
    assert len(objects) > 6
    for each in objects[len(objects) // 4 :]:
        if kind == "gone":
            each.unlink()
        elif kind == "damaged":
            content = bytearray(each.read_bytes())
            content[len(content) // 3] ^= 0xFF
            each.write_bytes(content)
    if kind == "nowhere":
        shutil.rmtree(archive)


@pytest.mark.parametrize("kind", ["gone", "damaged", "nowhere"])
def test_what_a_task_cannot_read_in_the_archive_the_broker_gives_each_row_once(
    archived: Archived, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = archived.topic
    whole = rows(topic, archiveReads="never")
    harmed = Path(shutil.copytree(archived.archive, tmp_path / "harmed"))
    damage(harmed, kind)
    made = batch_reader(topic, "value", "partition", "offset", batchBytes=2_000)
    tasks = made.partitions()
    for task in tasks:
        if task.archived:
            task.archive = Archive(str(harmed), is_served=True)
    assert cold(tasks)
    assert rows_of(made, tasks) == whole
    assert "Brokers are asked for what is left: events, " in caplog.text
    # An archive that was named by an option is all that there is: what is not there is an error.
    for task in tasks:
        if task.archived:
            task.archive = Archive(str(harmed), is_served=False)
    with pytest.raises(Exception, match="PYLOG_"):
        rows_of(made, tasks)


def test_a_path_that_means_something_only_to_the_broker_is_not_followed(tmp_path: Path) -> None:
    relative = os.path.relpath(tmp_path / "archive")
    with begun(tmp_path / "broker", relative) as broker, Admin(broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        admin.create_topic("events", 1, config=SHORT)
        write(servers, "events", values(0, 400), batch_num_messages=10)
        until_short(admin, "events", 400 - KEPT_RECORDS)
        topic = Topic(None, servers, Client({"bootstrap.servers": servers}), "events", 1)
        made = batch_reader(topic, "value", "partition", "offset")
        tasks = made.partitions()
        assert cold(tasks) == []
        assert len(rows_of(made, tasks)) == 400
