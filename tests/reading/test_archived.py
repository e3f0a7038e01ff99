"""Topics whose beginning is in an archive, read with the option `archive`: the same rows as if the brokers still had all, each once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.root import open_archive
from pylog_spark.client import Admin
from tests.harness import runs
from tests.reading.streams import BOTH_WAYS, Checkpoint, Query, batch_reader, failure, read
from tests.reading.support import EITHER
from tests.spark.support import Topic

pytestmark = [EITHER, BOTH_WAYS]

Topics = Callable[..., Topic]
ROUNDS = runs.rounds("PYLOG_ARCHIVE_ROUNDS", 8, 200)
SEED = runs.seed("PYLOG_ARCHIVE_SEED")
SMALL = CopyOptions(segment_bytes=500, frame_bytes=300)
#: An hour ago: brokers delete what is older than their retention, and on a slow machine they come to that within a test.
BEGIN_MS = round(time.time() - 3_600) * 1_000


def archive(topic: Topic, url: Path) -> int:
    """Copy what is new; how many segments."""
    with Admin(topic.servers) as admin:
        return len(list(copy_topic(admin, open_archive(str(url), create=True), topic.name, SMALL, pytest.fail)))


def put(topic: Topic, partition: int, first: int, count: int) -> None:
    """Append records whose value says partition and number, which is also their offset and their second."""
    for start in range(first, first + count, 20):
        numbers = range(start, min(start + 20, first + count))
        stamps = pa.array([(BEGIN_MS + 1_000 * number) * 1_000 for number in numbers], pa.timestamp("us", "UTC"))
        topic.put([f"{partition}-{number}" for number in numbers], partition, timestamp=stamps)


def rows(topic: Topic, **options: Any) -> list[str]:
    """The values of a batch read, by partition and offset."""
    made = batch_reader(topic, "value", "partition", "offset", **options)
    found = [row for task in made.partitions() for batch in made.read(task) for row in batch.to_pylist()]
    for row in found:
        assert row["value"].decode() == f"{row['partition']}-{row['offset']}"
    return [row["value"].decode() for row in sorted(found, key=lambda row: (row["partition"], row["offset"]))]


def wanted(*spans: tuple[int, int, int]) -> list[str]:
    """The values of the offsets [start, end) of partitions."""
    return [f"{partition}-{number}" for partition, start, end in spans for number in range(start, end)]


@pytest.fixture
def kept(make_topic: Topics, tmp_path: Path) -> tuple[Topic, Path]:
    """A topic of 300 and 100 records, of which 250 and 100 are archived; brokers have them from 180 and 100 on."""
    topic, url = make_topic(2), tmp_path / "archive"
    put(topic, 0, 0, 250)
    put(topic, 1, 0, 100)
    assert archive(topic, url) > 4
    put(topic, 0, 250, 50)
    topic.client.delete_records([(topic.name, 0, 180), (topic.name, 1, 100)])
    return topic, url


def test_a_batch_has_all_records_once_and_asks_brokers_for_what_is_not_archived(
    kept: tuple[Topic, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, url = kept
    assert rows(topic) == wanted((0, 180, 300))
    assert rows(topic, archive=url) == wanted((0, 0, 300), (1, 0, 100))
    tasks = batch_reader(topic, "value", archive=url).partitions()
    asked = [part for task in tasks for place, (part, _) in enumerate(task.ranges) if place not in task.archived]
    spans = [(part.partition.partition, part.start, part.end) for part in asked]
    assert spans == [(0, 250, 300)]
    assert rows(topic, archive=url, limit=7) == wanted((0, 0, 7))
    assert rows(topic, archive=url, limit=260) == wanted((0, 0, 260))


def test_ranges_and_times_reach_into_the_archive(kept: tuple[Topic, Path]) -> None:
    topic, url = kept
    print(f"PYLOG_ARCHIVE_SEED={SEED}")
    drawn = random.Random(SEED)
    for _ in range(ROUNDS):
        first, last = sorted(drawn.randrange(301) for _ in range(2))
        asked = {"assign": f'{{"{topic.name}": [0]}}', "archive": url}
        offsets = {
            f"{edge}Offsets": f'{{"{topic.name}": {{"0": {each}}}}}'
            for edge, each in (("starting", first), ("ending", last))
        }
        assert rows(topic, **asked, **offsets) == wanted((0, first, last))
        times = {"startingTimestamp": BEGIN_MS + 1_000 * first, "endingTimestamp": BEGIN_MS + 1_000 * last - 500}
        if first < last < 300:
            assert rows(topic, **asked, **times) == wanted((0, first, last))


def test_a_stream_begins_in_the_archive_and_goes_on_at_the_brokers(kept: tuple[Topic, Path]) -> None:
    topic, url = kept
    checkpoint = Checkpoint()
    query = read(topic, checkpoint, archive=url, maxOffsetsPerTrigger=90)
    assert sorted(query.values) == sorted(wanted((0, 0, 300), (1, 0, 100)))
    assert len(checkpoint.offsets) > 4
    put(topic, 0, 300, 10)
    assert read(topic, checkpoint, archive=url).values == wanted((0, 300, 310))
    # A stream that was away for longer than the brokers' retention.
    put(topic, 0, 310, 90)
    archive(topic, url)
    put(topic, 0, 400, 5)
    topic.client.delete_records([(topic.name, 0, 395)])
    late = Checkpoint(checkpoint.offsets.copy(), checkpoint.committed)
    assert failure(topic, late)[0] == "PYLOG_DATA_LOSS"
    assert sorted(read(topic, checkpoint, archive=url).values) == sorted(wanted((0, 310, 405)))


@pytest.mark.parametrize(("limit", "most"), [({"maxRecordsPerTrigger": 33}, 33), ({"maxBytesPerTrigger": "900b"}, 50)])
def test_limits_of_a_trigger_hold_over_the_border(
    kept: tuple[Topic, Path], limit: dict[str, object], most: int
) -> None:
    topic, url = kept
    query = read(topic, archive=url, assign=f'{{"{topic.name}": [0]}}', **limit)
    assert sorted(query.values) == sorted(wanted((0, 0, 300)))
    assert len(query.sizes) > 6
    assert max(query.sizes) <= most


def test_the_end_of_a_log_is_read_from_brokers_although_it_is_archived(make_topic: Topics, tmp_path: Path) -> None:
    topic, url = make_topic(), tmp_path / "archive"
    put(topic, 0, 0, 40)
    archive(topic, url)
    checkpoint = Checkpoint()
    assert read(topic, checkpoint, archive=url, startingOffsets=f'{{"{topic.name}": {{"0": 35}}}}').values == wanted(
        (0, 35, 40)
    )
    query = Query(topic, checkpoint, archive=url)
    put(topic, 0, 40, 5)
    archive(topic, url)
    tasks = query._reader.partitions({topic.name: {"0": 40}}, {topic.name: {"0": 42}})
    query.stop()
    assert [task.archived for task in tasks] == [frozenset()]


def test_another_topic_of_that_name_and_an_archive_with_a_gap_are_not_read(
    kept: tuple[Topic, Path], caplog: pytest.LogCaptureFixture
) -> None:
    topic, url = kept
    topic.client.delete_records([(topic.name, 0, 270)])
    assert rows(topic, archive=url) == wanted((0, 270, 300), (1, 0, 100))
    assert f"has {topic.name}-0 up to offset 250, and the brokers from 270 on: it is not read" in caplog.text
    topic.recreate()
    put(topic, 0, 0, 3)
    assert rows(topic, archive=url) == wanted((0, 0, 3))
