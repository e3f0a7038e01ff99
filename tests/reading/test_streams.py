"""A streaming query from batch to batch, without Spark's engine: restarts, batches that run again, what appears while it runs. With the
engine: ``tests/spark/test_stream.py``; Spark's connector on Apache Kafka: ``tests/parity``."""

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.harness.waiting import until
from tests.reading.streams import BOTH_WAYS, Checkpoint, Query, read
from tests.spark.support import Topic, transactions

pytestmark = [pytest.mark.cluster, BOTH_WAYS]

Topics = Callable[..., Topic]


def test_nothing_new_makes_no_batch(make_topic: Topics) -> None:
    topic = make_topic(partitions=12)
    for partition in range(12):
        topic.put(["a"], partition)
    checkpoint = Checkpoint()
    query = Query(topic, checkpoint)
    assert [query.trigger() for _ in range(5)] == [True, False, False, False, False]
    query.stop()
    assert read(topic, checkpoint).batches == {}
    assert checkpoint.committed == 1


def test_a_batch_that_was_planned_but_not_committed_is_run_again_the_same(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", "b"], 0)
    topic.put(["c"], 1)
    checkpoint = Checkpoint()
    read(topic, checkpoint)
    topic.put(["later"], 0)
    checkpoint.forget_commit()
    again = read(topic, checkpoint)
    assert sorted(row.value for row in again.batches[0]) == [b"a", b"b", b"c"]
    assert [row.value for row in again.batches[1]] == [b"later"]


def test_a_running_query_sees_new_records_and_new_partitions_from_their_beginning(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    query = Query(topic)
    assert query.trigger()
    topic.grow(2)
    topic.put(["b"], 1)
    assert query.trigger()
    query.stop()
    assert query.values == ["a", "b"]


def test_a_pattern_finds_topics_that_are_made_later(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    query = Query(topic, subscribePattern=f"{topic.name[:-1]}[0-9]")
    assert query.trigger()
    make_topic().put(["b"])
    until(query.trigger, "the new topic is found")
    query.stop()
    assert query.values == ["a", "b"]


def test_the_offsets_are_as_documented_and_the_end_of_the_log_is_reported(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a", "b", "c"])
    checkpoint = Checkpoint()
    query = Query(topic, checkpoint, maxOffsetsPerTrigger=2)
    assert query.trigger()
    query.stop()
    topic_id = topic.client.describe_topics([topic.name])[0]["topic_id"]
    written = json.loads(checkpoint.offsets[0])
    assert written == {"@pylog": {"topic_ids": {topic.name: topic_id}, "version": 1}, topic.name: {"0": 2}}
    assert query.latest is not None
    assert json.loads(query.latest)[topic.name] == {"0": 3}


def put(topic: Topic, partition: int, values: list[str], keys: list[bytes]) -> None:
    stamps = pa.array([1_000 * (1 + number) for number in range(len(values))], pa.timestamp("ms", "UTC"))
    topic.put(values, partition, timestamp=stamps, key=pa.array(keys, pa.binary()))


def test_a_stream_is_filtered_and_shares_tasks_and_goes_on_where_it_stopped(make_topic: Topics) -> None:
    topic = make_topic(partitions=2, retention_ms="-1")
    options = {"filterTimestamp": "2000..", "filterKey": "k", "filterOffset": "..5", "minRecordsPerPartition": "100"}
    checkpoint = Checkpoint()
    found = []
    for first in (0, 3):
        for partition in (0, 1):
            last = b"k" if first == 0 else b"x"
            put(topic, partition, [f"{partition}{first + number}" for number in range(3)], [b"k", b"k", last])
        found.append(read(topic, checkpoint, **options).values)
    assert found == [["01", "02", "11", "12"], ["04", "14"]]


def test_a_stream_whose_batches_hold_nothing_wanted_still_moves(make_topic: Topics) -> None:
    topic = make_topic()
    checkpoint = Checkpoint()
    found, batches = [], 0
    for number in range(3):
        topic.put([str(number)])
        run = read(topic, checkpoint, filterOffset="2..")
        found += run.values
        batches += len(run.batches)
    assert (found, batches) == (["2"], 3)


def test_many_partitions_with_few_records_are_one_task_and_each_record_is_read_once(make_topic: Topics) -> None:
    topic = make_topic(partitions=200)
    wanted = []
    for round_ in range(2):
        for partition in range(round_, 200, 3):
            topic.put([f"{round_}-{partition}"], partition)
            wanted.append(f"{round_}-{partition}")
    query, apart = Query(topic), Query(topic, minRecordsPerPartition=1)
    assert query.trigger()
    assert apart.trigger()
    for each in (query, apart):
        each.stop()
        assert each.values == sorted(wanted)
    assert (query.tasks, apart.tasks) == ([1], [len({*range(0, 200, 3), *range(1, 200, 3)})])


def test_full_partitions_of_a_stream_have_a_task_each_and_small_ones_share_theirs(make_topic: Topics) -> None:
    topic = make_topic(partitions=6)
    for partition in range(6):
        topic.put([f"{partition}"] * (1_000 if partition in (1, 4) else 1), partition)
    query = Query(topic, prefetchMaxBytes=0)
    assert query.trigger()
    query.stop()
    assert query.tasks == [2]
    assert [query.values.count(f"{partition}") for partition in range(6)] == [1, 1_000, 1, 1, 1_000, 1]


def test_few_large_records_of_a_stream_do_not_share_a_task(make_topic: Topics) -> None:
    topic = make_topic(partitions=4, max_message_bytes="4000000")
    for partition in range(4):
        topic.put([b"%d" % partition + bytes(600_000)] * 2, partition)
    query, together = Query(topic), Query(topic, minRecordsPerPartition=1_000)
    for each in (query, together):
        assert each.trigger()
        each.stop()
    assert (query.tasks, together.tasks) == ([4], [1])
    assert [rows.value[:1] for rows in query.batches[0]] == [b"0", b"0", b"1", b"1", b"2", b"2", b"3", b"3"]


def test_each_batch_is_a_line_in_the_drivers_log_that_says_what_and_from_where(
    make_topic: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", "b"], 0)
    topic.put(["c"], 1)
    with caplog.at_level("INFO", logger="pylog_spark"):
        by_driver = read(topic, prefetchMaxBytes="1m")
        read(topic, prefetchMaxBytes=0)
    what = f"from {topic.servers}: {topic.name}, 3 offsets in 0: [0, 2), 1: [0, 1)"
    assert caplog.messages == [f"pylog reads on the driver {what}", f"pylog reads in 1 tasks {what}"]
    assert by_driver.prefetched == [0]


def test_a_batch_of_more_bytes_than_the_bound_is_read_by_tasks_and_small_ones_on_the_driver(make_topic: Topics) -> None:
    topic = make_topic(partitions=2, max_message_bytes="4000000")
    query = Query(topic, prefetchMaxBytes="100k")
    sizes = (10, 200_000, 10, 99_000, 10)
    for number, size in enumerate(sizes):
        topic.put([b"%d" % number + bytes(size)], number % 2)
        assert query.trigger()
    query.stop()
    assert [rows[0].value for _, rows in sorted(query.batches.items())] == [
        b"%d" % number + bytes(size) for number, size in enumerate(sizes)
    ]
    # The large row makes the driver leave the batch after it to the tasks, since it may be as large.
    assert query.prefetched == [0, 3, 4]


def test_the_driver_that_cannot_read_leaves_a_batch_to_the_tasks(
    make_topic: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(partitions=1)
    topic.put(["a", "b"], 0)
    query = Query(topic)
    monkeypatch.setattr("pylog_spark.source.prefetch.Prefetcher.read", lambda *_: None)
    assert query.trigger()
    query.stop()
    assert (query.values, query.prefetched, query.tasks) == (["a", "b"], [], [1])


def test_when_spark_does_not_ask_for_the_rows_of_the_driver_the_tasks_read_and_that_is_said_once(
    make_topic: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(partitions=1)
    query = Query(topic, prefetchMaxBytes="1m")
    monkeypatch.setattr("tests.reading.streams._SimpleStreamReaderWrapper", int)
    with caplog.at_level("WARNING", logger="pylog_spark"):
        for value in "abc":
            topic.put([value], 0)
            assert query.trigger()
    query.stop()
    assert (query.values, query.prefetched) == (["a", "b", "c"], [])
    assert [line for line in caplog.messages if "does not take rows from the driver" in line] == caplog.messages
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("options", [{}, {"maxRecordsPerTrigger": 2}, {"maxRecordsPerTrigger": 4}])
def test_a_query_that_has_read_every_row_is_not_behind_though_the_log_ends_with_markers_and_aborted_records(
    make_topic: Topics, options: dict[str, int]
) -> None:
    topic = make_topic()
    transactions(topic, (2, True), (2, True), (1, False))
    checkpoint = Checkpoint()
    query = Query(topic, checkpoint, **options)
    while len(query.values) < 4:
        assert query.trigger()
    query.stop()
    assert query.latest == checkpoint.offsets[-1]
    assert all(query.sizes), "a micro-batch of markers alone was made"
