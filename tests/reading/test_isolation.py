"""Transactions as a reader meets them: committed records by default, markers and aborted records neither loss nor hang."""

import json
import random
import shlex
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark._native import RecordWriter
from pylog_spark.datasource import PylogDataSource
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position
from pylog_spark.sink import holding
from pylog_spark.sink.identity import STREAM, Write
from tests.reading.streams import Query
from tests.reading.support import EITHER, batches, reader, schema, tasks, values
from tests.spark.once import Job
from tests.spark.support import Topic

pytestmark = [pytest.mark.cluster, EITHER]

Topics = Callable[..., Topic]


def begun(topic: Topic, records: list[str], partition: int = 0) -> RecordWriter:
    """A transaction of its own that has written `records` and is still open."""
    writer = RecordWriter(
        {"bootstrap.servers": topic.servers}, topic.name, transactional_id=f"{topic.name}-{records}-{partition}"
    )
    raw = pa.array([record.encode() for record in records], pa.binary())
    writer.write(pa.record_batch({"value": raw, "partition": pa.array([partition] * len(records), pa.int32())}))
    writer.flush()
    return writer


def ended(topic: Topic, records: list[str], *, commit: bool, partition: int = 0) -> None:
    writer = begun(topic, records, partition)
    writer.end(commit)
    writer.close()


def rows(topic: Topic, **options: Any) -> list[tuple[int, int, bytes]]:
    found = batches(reader(topic, "partition", "offset", "value", **options))
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def offsets(topic: Topic, first: int) -> str:
    return json.dumps({topic.name: {"0": first}})


def test_a_range_that_ends_in_markers_is_read_to_its_end(make_topic: Topics) -> None:
    topic = make_topic()
    ended(topic, ["a", "b"], commit=True)
    ended(topic, ["lost"], commit=False)
    assert topic.offsets() == [5]  # two records, a marker, a record, a marker
    assert values(topic) == ["a", "b"]
    for first in (2, 3, 4):
        assert values(topic, startingOffsets=offsets(topic, first)) == []
    assert values(topic, endingOffsets=offsets(topic, 3), maxRecordsPerPartition=1) == ["a", "b"]
    assert values(topic, isolationLevel="read_uncommitted") == ["a", "b", "lost"]


def test_a_topic_with_nothing_but_aborted_records_is_an_empty_frame(make_topic: Topics) -> None:
    topic = make_topic()
    for number in range(3):
        ended(topic, [f"{number}"] * 4, commit=False)
    assert tasks(topic) == 1
    assert values(topic) == []
    assert values(topic, limit=1) == []
    assert values(topic, minPartitions=4) == []


def test_an_open_transaction_ends_a_read_until_it_is_committed(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["before"])
    writer = begun(topic, ["open"])
    topic.put(["after"])
    assert values(topic) == ["before"]
    assert values(topic, **{"kafka.isolation.level": "read_uncommitted"}) == ["before", "open", "after"]
    with pytest.raises(Exception, match=f"endingOffsets asks for offset 3 of {topic.name}-0, which holds 0 to 1"):
        values(topic, endingOffsets=offsets(topic, 3))
    writer.end(True)
    writer.close()
    assert values(topic) == ["before", "open", "after"]


def test_a_filter_finds_committed_records_only(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    ended(topic, ["lost"], commit=False)
    ended(topic, ["b"], commit=True)
    assert values(topic, filterTimestamp="1..") == ["a", "b"]
    assert values(topic, filterOffset="1..", limit=5) == ["b"]
    writer = begun(topic, ["open"])
    assert values(topic, filterTimestamp="1..") == ["a", "b"]
    writer.end(False)
    writer.close()
    assert values(topic, filterTimestamp="1..") == ["a", "b"]


def test_transactions_in_any_order_give_the_committed_records_in_any_split(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    chance = random.Random(5)
    expected: list[list[str]] = [[], []]
    writers: list[tuple[RecordWriter, int, list[str]]] = []
    for number in range(24):
        partition = chance.randrange(2)
        records = [f"{number:02}-{index}" for index in range(chance.randrange(1, 4))]
        if chance.random() < 0.3:
            topic.put(records, partition)
            expected[partition] += records
            continue
        writers.append((begun(topic, records, partition), partition, records))
        if len(writers) > 2:
            writer, place, written = writers.pop(chance.randrange(len(writers)))
            commit = chance.random() < 0.5
            writer.end(commit)
            writer.close()
            expected[place] += written if commit else []
    for writer, _, _ in writers:
        writer.end(False)
        writer.close()
    every = sorted(expected[0]) + sorted(expected[1])
    for options in ({}, {"maxRecordsPerPartition": 1}, {"minRecordsPerPartition": 1_000}, {"minPartitions": 7}):
        assert values(topic, **options) == every, options
    pieces = ",".join(str(offset) for offset in range(0, max(topic.offsets()), 3))
    wanted = [row for row in rows(topic) if row[1] % 3 == 0]
    assert rows(topic, filterOffset=pieces) == wanted
    assert len(wanted) > 5


def test_a_stream_stops_before_an_open_transaction_and_goes_on_after_it(make_topic: Topics) -> None:
    topic = make_topic()
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    stream: Any = PylogDataSource(given).streamReader(schema("value"))
    limit = stream.getDefaultReadLimit()

    def batch(start: dict[str, Any]) -> tuple[list[bytes], dict[str, Any]]:
        end = stream.latestOffset(start, limit)
        read = [batch for task in stream.partitions(start, end) for batch in stream.read(task)]
        return [value for part in read for value in part.column(0).to_pylist()], end

    topic.put(["before"])
    writer = begun(topic, ["open"])
    found, end = batch(stream.initialOffset())
    assert (found, list(Position.from_document(end).offsets.values())) == ([b"before"], [1])
    assert stream.latestOffset(end, limit) is end
    writer.end(True)
    writer.close()
    assert batch(end)[0] == [b"open"]
    stream.stop()


def test_a_reader_that_is_held_back_says_by_whom_since_when_and_which_command_ends_it(
    make_topic: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holding, "LONG_MS", 0)
    topic = make_topic()
    topic.put(["before"])
    writer = begun(topic, ["open"])
    topic.put(["after"])
    assert values(topic) == ["before"]
    (warning,) = [each.getMessage() for each in caplog.records if "last stable offset" in each.getMessage()]
    for part in (f"{topic.name}-0 only up to the last stable offset 1", "goes on to 3", "--execute ends it"):
        assert part in warning
    name = shlex.quote(f"{topic.name}-['open']-0")
    assert f"pylog transaction abort {name} --execute" in warning
    writer.end(False)
    writer.close()
    caplog.clear()
    assert values(topic) == ["before", "after"]
    assert caplog.records == []


def test_a_reader_that_an_undecided_write_holds_back_says_its_key_and_the_command(
    make_topic: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(holding, "LONG_MS", 0)
    topic = make_topic()
    job = Job(topic.servers, topic.name, Write(STREAM, f"{topic.name}.query", 3))
    job.task(0, "a")
    topic.put(["after"])
    assert values(topic) == []
    (warning,) = [each.getMessage() for each in caplog.records if "last stable offset" in each.getMessage()]
    assert f"the undecided write {job.write.key} (version 3" in warning
    assert f"pylog sink abort {job.write.key} --execute ends it now" in warning
    job.commit()
    assert values(topic) == ["a", "after"]


def test_the_progress_of_a_stream_that_is_held_back_shows_how_much_it_has_not_read(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["before"])
    writer = begun(topic, ["open"])
    topic.put(["after"])
    query = Query(topic)
    assert query.trigger()
    assert Position.from_document(json.loads(query.checkpoint.offsets[-1])).offsets == {
        TopicPartition(topic.name, 0): 1
    }
    assert Position.from_document(json.loads(query.latest or "")).offsets == {TopicPartition(topic.name, 0): 3}
    query.stop()
    writer.end(False)
    writer.close()
