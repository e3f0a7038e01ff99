"""What a write puts into the log, without Spark: rows, codecs, partitions, topics, refusals, and which transactions it takes. With
Spark: ``tests/spark/test_sink.py`` and ``tests/spark/test_sink_once.py``; step by step: ``tests/spark/test_sink_protocol.py``."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from pylog_spark.errors import PylogError
from pylog_spark.sink.decision import TOPIC
from tests.reading.streams import batch_reader
from tests.reading.support import EITHER, batches, reader, values
from tests.reading.writing import rows, save, texts
from tests.spark.once import committed_values, open_ends, stored_keys
from tests.spark.support import Topic

pytestmark = [pytest.mark.cluster, EITHER]

Topics = Callable[..., Topic]


def read(topic: Topic, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches(reader(topic, *columns)) for row in batch.to_pylist()]


def seen(topic: Topic) -> list[str]:
    return committed_values(topic.servers, topic.name)


def refused(topic: Topic, /, *tasks: pa.RecordBatch, **options: Any) -> tuple[str, str]:
    """The condition and the sentence of the error that the write must fail with."""
    with pytest.raises(PylogError) as caught:
        save(topic, *tasks, **options)
    return caught.value.condition, caught.value.sentence


def test_a_column_says_the_topic_and_the_option_wins_over_it(make_topic: Topics) -> None:
    first, second = make_topic(), make_topic()
    frame = rows(topic=[first.name, second.name], value=["x", "y"])
    save(first, frame, topic=None)
    assert (values(first), values(second)) == (["x"], ["y"])
    save(first, frame)
    assert sorted(values(first)) == ["x", "x", "y"]
    assert values(second) == ["y"]


def test_a_null_value_is_a_tombstone(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, rows(key=["k"], value=pa.array([None], pa.string())))
    assert read(topic, "key", "value") == [(b"k", None)]


def test_keys_are_partitioned_as_kafkas_own_clients_do(make_topic: Topics) -> None:
    ours, theirs = make_topic(partitions=7), make_topic(partitions=7)
    keys = [f"key-{number}" for number in range(300)] + ["", "é"]
    save(ours, rows(key=keys, value=keys))
    producer = confluent_kafka.Producer({"bootstrap.servers": ours.servers, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs.name, value=key, key=key)
    assert producer.flush(30) == 0
    placed = [dict(read(written, "value", "partition")) for written in (ours, theirs)]
    # librdkafka sends an empty key to a random partition, Java's client hashes it: not compared.
    assert len(placed[0]) == len(keys)
    assert {k: p for k, p in placed[0].items() if k} == {k: p for k, p in placed[1].items() if k}


def test_rows_without_a_key_are_spread_over_partitions(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    save(topic, *([texts(*["x" * 1000] * 100)] * 4), **{"kafka.batch.size": "20000"})
    counted = Counter(partition for (partition,) in read(topic, "partition"))
    assert counted.keys() == {0, 1}
    assert counted.total() == 400


_WORKER = """
import sys
from types import SimpleNamespace
from tests.reading.writing import save, texts

servers, name, worker = sys.argv[1:]
for _ in range(4):
    save(SimpleNamespace(servers=servers, name=name), texts(*[worker] * 100))
"""


@pytest.mark.long  # of one worker: below
def test_small_jobs_of_several_workers_without_keys_fill_all_partitions_evenly(make_topic: Topics) -> None:
    # A Python worker of Spark's is a process that writes one task after the other.
    topic = make_topic(partitions=4)
    command = [sys.executable, "-c", _WORKER, topic.servers, topic.name]
    workers = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [worker.wait(120) for worker in workers] == [0] * 4
    written = Counter((int(value), partition) for value, partition in read(topic, "value", "partition"))
    assert written == {(worker, partition): 100 for worker in range(4) for partition in range(4)}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec_reads_back(make_topic: Topics, codec: str) -> None:
    topic = make_topic()
    wanted = [str(number) * 50 for number in range(100)]
    save(topic, texts(*wanted), compression=codec)
    assert values(topic) == wanted


def test_a_write_without_rows_writes_nothing(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, texts(), texts())
    assert topic.offsets() == [0]


def test_a_partition_that_does_not_exist_is_named(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    condition, sentence = refused(topic, rows(value=["a"], partition=pa.array([7], pa.int32())))
    assert condition in ("PYLOG_INVALID_OPTION", "PYLOG_UNKNOWN_TOPIC")
    assert "7" in sentence
    assert topic.name in sentence


def test_a_row_without_a_topic_is_refused(make_topic: Topics) -> None:
    topic = make_topic()
    _, sentence = refused(topic, rows(topic=pa.array([None], pa.string()), value=["x"]), topic=None)
    assert "topic" in sentence


def test_a_write_that_fails_leaves_nothing_to_see_and_nothing_open_and_the_next_one_appends(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    beyond = rows(value=["b"], partition=pa.array([7], pa.int32()))
    refused(topic, rows(value=["a"], partition=pa.array([1], pa.int32())), beyond)
    assert open_ends(topic.servers, topic.name) == {}
    assert seen(topic) == []
    save(topic, texts("after"))
    assert seen(topic) == ["after"]


def test_a_batch_with_a_name_is_written_once_for_each_version(make_topic: Topics) -> None:
    topic = make_topic()
    for version, written in ((3, ["a", "b"]), (3, ["a", "b"]), (2, ["older"]), (4, ["c"])):
        save(topic, texts(*written), txnAppId=f"orders.{topic.name}", txnVersion=version)
    assert seen(topic) == ["a", "b", "c"]


def test_one_name_and_version_may_stand_in_several_topics(make_topic: Topics) -> None:
    first, second = make_topic(), make_topic()
    for each in (first, second, first):
        save(each, texts("a"), txnAppId=f"orders.{first.name}", txnVersion=1)
    assert seen(first) == seen(second) == ["a"]


def test_a_write_over_several_topics_is_one(make_topic: Topics) -> None:
    first, second = make_topic(partitions=2), make_topic()
    numbers = [f"{number:02}" for number in range(20)]
    pairs = [(each.name, number) for each in (first, second) for number in numbers]
    parts = [list(zip(*pairs[start::3], strict=True)) for start in range(3)]
    save(first, *(rows(topic=list(names), value=list(part)) for names, part in parts), topic=None)
    assert seen(first) == seen(second) == numbers


def test_a_topic_that_does_not_exist_is_made_by_the_first_write(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, texts(*"01234"), texts(*"56789"), topic=f"{topic.name}-new")
    assert committed_values(topic.servers, f"{topic.name}-new") == [str(number) for number in range(10)]


def test_tasks_without_rows_open_no_transaction(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, texts(), texts("0"), texts(), texts())
    save(topic, texts())
    assert seen(topic) == ["0"]
    assert topic.offsets() == [2], "one row and one marker"


def test_no_pattern_reads_the_topic_of_decisions(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, texts("a"))
    assert stored_keys(topic.servers) is not None
    made = batch_reader(topic, "topic", subscribePattern=f"{TOPIC}|{topic.name}")
    assert {row["topic"] for batch in batches(made) for row in batch.to_pylist()} == {topic.name}


def test_a_transaction_time_out_that_the_brokers_do_not_allow_names_the_option(make_topic: Topics) -> None:
    condition, sentence = refused(make_topic(), texts("a"), **{"kafka.transaction.timeout.ms": "999999999"})
    assert condition == "PYLOG_INVALID_OPTION"
    assert "transaction.timeout.ms" in sentence


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_small_tasks_of_one_worker_go_on_from_partition_to_partition(make_topic: Topics, delivery: str) -> None:
    topic = make_topic(partitions=4)
    for _ in range(8):
        save(topic, texts(*["v"] * 100), delivery=delivery)
    assert Counter(partition for (partition,) in read(topic, "partition")) == dict.fromkeys(range(4), 200)


def test_columns_in_other_letters_and_of_wider_types_make_the_same_record(make_topic: Topics) -> None:
    topic = make_topic(partitions=3)
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    save(
        topic,
        rows(
            VALUE=pa.array(["v"]),
            Key=pa.array(["k"]),
            Partition=pa.array([2], pa.int64()),
            headers=pa.array([[{"key": "h", "value": "text"}]], headers),
        ),
    )
    assert read(topic, "key", "value", "partition", "headers") == [(b"k", b"v", 2, [{"key": "h", "value": b"text"}])]


def test_a_column_in_the_records_own_letters_wins(make_topic: Topics) -> None:
    topic = make_topic()
    save(topic, rows(Value=pa.array(["another"]), value=pa.array(["this"])))
    assert values(topic) == ["this"]


def test_a_partition_that_no_topic_has_is_refused_with_the_row(make_topic: Topics) -> None:
    topic = make_topic()
    _, sentence = refused(topic, rows(value=pa.array(["v"]), partition=pa.array([2**40], pa.int64())))
    assert f"row 0 has partition {2**40}" in sentence


def test_rows_older_than_their_topic_keeps_are_warned_of_once_for_a_write(
    make_topic: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    keeps, deletes = make_topic(retention_ms="-1"), make_topic(retention_ms="3600000")
    old = rows(value=["a"], timestamp=pa.array([1_000], pa.timestamp("ms", "UTC")))
    save(keeps, old)
    assert caplog.messages == []
    save(deletes, old, old)
    (sentence,) = caplog.messages
    assert f"Rows for the topic '{deletes.name}' have times as old as 1970-01-01 00:00:01+00:00" in sentence
    assert "retention.ms of 3600000 (1 hour)" in sentence


def test_a_column_of_times_for_a_topic_that_deletes_by_them_is_logged_before_the_write(
    make_topic: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    keeps, deletes = make_topic(retention_ms="-1"), make_topic(retention_ms="3600000")
    now = pa.array([time.time_ns() // 1_000_000], pa.timestamp("ms", "UTC"))
    recent = rows(value=["a"], timestamp=now)
    with caplog.at_level("INFO", logger="pylog_spark"):
        save(keeps, recent)
        save(deletes, recent.select(["value"]))
        assert [line for line in caplog.messages if "retention" in line] == []
        caplog.clear()
        save(deletes, recent)
    logged_before, written = caplog.messages
    assert f"a column timestamp to '{deletes.name}', whose retention.ms of 3600000 (1 hour) goes by it" in logged_before
    assert "set retention.ms (pylog config alter topic" in logged_before
    assert written.startswith("pylog wrote 1 records")
    caplog.clear()
    save(deletes, recent)
    assert caplog.messages == [], "it is no warning"


def test_each_write_is_a_line_in_the_drivers_log_that_says_what_and_where_to(
    make_topic: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    with caplog.at_level("INFO", logger="pylog_spark"):
        save(topic, texts("a", "b"))
    (line,) = caplog.messages
    assert line == f"pylog wrote 2 records in 1 tasks to {topic.servers}: {topic.name}, 2 offsets in 0: [0, 2)"
