"""A streaming query from batch to batch, without Spark's engine: restarts, batches that run again, what appears while it runs. With the
engine: ``tests/spark/test_stream.py``; Spark's connector on Apache Kafka: ``tests/parity``."""

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.harness.waiting import until
from tests.reading.streams import Checkpoint, Query, read
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_nothing_new_makes_no_batch(topic: Topics) -> None:
    one = topic(partitions=12)
    for partition in range(12):
        one.put(["a"], partition)
    checkpoint = Checkpoint()
    query = Query(one, checkpoint)
    assert [query.trigger() for _ in range(5)] == [True, False, False, False, False]
    query.stop()
    assert read(one, checkpoint).batches == {}
    assert checkpoint.committed == 1


def test_a_batch_that_was_planned_but_not_committed_is_run_again_the_same(topic: Topics) -> None:
    one = topic(partitions=2)
    one.put(["a", "b"], 0)
    one.put(["c"], 1)
    checkpoint = Checkpoint()
    read(one, checkpoint)
    one.put(["later"], 0)
    checkpoint.forget_commit()
    again = read(one, checkpoint)
    assert sorted(row.value for row in again.batches[0]) == [b"a", b"b", b"c"]
    assert [row.value for row in again.batches[1]] == [b"later"]


def test_a_running_query_sees_new_records_and_new_partitions_from_their_beginning(topic: Topics) -> None:
    one = topic()
    one.put(["a"])
    query = Query(one)
    assert query.trigger()
    one.grow(2)
    one.put(["b"], 1)
    assert query.trigger()
    query.stop()
    assert query.values == ["a", "b"]


def test_a_pattern_finds_topics_that_are_made_later(topic: Topics) -> None:
    one = topic()
    one.put(["a"])
    query = Query(one, subscribePattern=f"{one.name[:-1]}[0-9]")
    assert query.trigger()
    topic().put(["b"])
    until(query.trigger, "the new topic is found")
    query.stop()
    assert query.values == ["a", "b"]


def test_the_offsets_are_as_documented_and_the_end_of_the_log_is_reported(topic: Topics) -> None:
    one = topic()
    one.put(["a", "b", "c"])
    checkpoint = Checkpoint()
    query = Query(one, checkpoint, maxOffsetsPerTrigger=2)
    assert query.trigger()
    query.stop()
    topic_id = one.client.describe_topics([one.name])[0]["topic_id"]
    written = json.loads(checkpoint.offsets[0])
    assert written == {"@pylog": {"topic_ids": {one.name: topic_id}, "version": 1}, one.name: {"0": 2}}
    assert query.latest is not None
    assert json.loads(query.latest)[one.name] == {"0": 3}


def put(one: Topic, partition: int, values: list[str], keys: list[bytes]) -> None:
    stamps = pa.array([1_000 * (1 + number) for number in range(len(values))], pa.timestamp("ms", "UTC"))
    one.put(values, partition, timestamp=stamps, key=pa.array(keys, pa.binary()))


def test_a_stream_is_filtered_and_shares_tasks_and_goes_on_where_it_stopped(topic: Topics) -> None:
    one = topic(partitions=2, retention_ms="-1")
    options = {"filterTimestamp": "2000..", "filterKey": "k", "filterOffset": "..5", "minRecordsPerPartition": "100"}
    checkpoint = Checkpoint()
    found = []
    for first in (0, 3):
        for partition in (0, 1):
            last = b"k" if first == 0 else b"x"
            put(one, partition, [f"{partition}{first + number}" for number in range(3)], [b"k", b"k", last])
        found.append(read(one, checkpoint, **options).values)
    assert found == [["01", "02", "11", "12"], ["04", "14"]]


def test_a_stream_whose_batches_hold_nothing_wanted_still_moves(topic: Topics) -> None:
    one = topic()
    checkpoint = Checkpoint()
    found, batches = [], 0
    for number in range(3):
        one.put([str(number)])
        run = read(one, checkpoint, filterOffset="2..")
        found += run.values
        batches += len(run.batches)
    assert (found, batches) == (["2"], 3)
