"""Limits of a micro-batch counted in what a reader sees: rows and stored bytes, on logs with markers, aborted transactions and
holes of compaction."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pylog_spark._native import Client
from tests.brokers import Brokers
from tests.spark.damage import Own
from tests.spark.support import Collector, Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def transactions(one: Topic, *ends: tuple[int, bool]) -> None:
    """Write transactions of so many records each, committed or aborted, one after the other, to partition 0."""
    producer = Producer({"bootstrap.servers": one.servers, "transactional.id": one.name, "linger.ms": 5})
    producer.init_transactions()
    for number, (records, commit) in enumerate(ends):
        producer.begin_transaction()
        for record in range(records):
            producer.produce(one.name, f"{number}-{record}", partition=0)
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


@pytest.fixture
def mixed(topic: Topics) -> Topic:
    """30 rows for readers of committed data in 5 transactions, 2 of them aborted, and 10 plain rows in partition 1."""
    one = topic(partitions=2)
    transactions(one, (10, True), (7, False), (15, True), (9, False), (5, True))
    one.put([f"plain-{number}" for number in range(10)], 1)
    return one


def test_every_batch_has_exactly_as_many_rows_as_allowed_while_there_are_enough(mixed: Topic, checkpoint: str) -> None:
    run = Collector(checkpoint)
    run.run(mixed.read_stream(maxRecordsPerTrigger=7, **{"kafka.isolation.level": "read_committed"}))
    assert run.sizes == [7, 7, 7, 7, 7, 5]
    assert len(set(run.values)) == 40


def test_a_reader_of_all_data_counts_aborted_records_and_no_markers(mixed: Topic, checkpoint: str) -> None:
    run = Collector(checkpoint)
    run.run(mixed.read_stream(maxRecordsPerTrigger=20, **{"kafka.isolation.level": "read_uncommitted"}))
    assert run.sizes == [20, 20, 16]


def test_holes_of_compaction_are_not_counted(tmp_path: Path, spark: Any, checkpoint: str) -> None:
    with Brokers(tmp_path / "broker", log_cleaner_backoff_ms=50) as broker:
        own = Own(broker, spark)
        one = own.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
        keys = [f"k{number % 50 if number % 3 else number}" for number in range(3000)]
        one.put([f"{number}" for number in range(3000)], key=pa.array([key.encode() for key in keys], pa.binary()))
        one.client.alter_configs("topic", one.name, {"segment.ms": "1"})
        one.put(["last"], key=pa.array([b"last"], pa.binary()))
        rows = len(set(keys)) + 1
        own.until(lambda: one.client.advance([(one.name, 0, 0, 3001, None, None, False)]) == [(3001, rows, ANY)])
        run = Collector(checkpoint)
        run.run(one.read_stream(maxRecordsPerTrigger=300))
        assert sum(run.sizes) == rows
        assert run.sizes[:-1] == [300] * (math.ceil(rows / 300) - 1)


def test_a_limit_in_bytes_takes_whole_stored_batches(topic: Topics, checkpoint: str) -> None:
    one = topic()
    for number in range(6):
        one.put([f"{number}" * 1000] * 10)
    run = Collector(checkpoint)
    run.run(one.read_stream(maxBytesPerTrigger="25k"))
    assert run.sizes == [20, 20, 20]


def test_a_stored_batch_larger_than_the_limit_is_taken_alone(topic: Topics, checkpoint: str) -> None:
    one = topic(partitions=2)
    for partition in (0, 1, 0):
        one.put(["v" * 1000] * 10, partition)
    run = Collector(checkpoint)
    run.run(one.read_stream(maxBytesPerTrigger=100))
    assert run.sizes == [10, 10, 10]


def test_of_several_limits_the_first_reached_holds(topic: Topics, checkpoint: str) -> None:
    one = topic()
    for _ in range(4):
        one.put(["v" * 100] * 10)
    run = Collector(checkpoint)
    run.run(one.read_stream(maxRecordsPerTrigger=15, maxBytesPerTrigger="1m", maxOffsetsPerTrigger=8))
    assert run.sizes == [8, 8, 8, 8, 8]


def test_trigger_once_takes_everything_whatever_the_limits(topic: Topics, checkpoint: str) -> None:
    one = topic()
    one.put(["a"] * 10)
    run = Collector(checkpoint)
    query = run.start(one.read_stream(maxRecordsPerTrigger=3, maxBytesPerTrigger=1), once=True)
    assert query.awaitTermination(60)
    assert run.sizes == [10]


def test_fewer_rows_than_partitions_starve_none(topic: Topics, checkpoint: str) -> None:
    one = topic(partitions=4)
    for partition in range(4):
        one.put(["v"] * 5, partition)
    run = Collector(checkpoint)
    run.run(one.read_stream(maxRecordsPerTrigger=2))
    assert run.sizes == [2] * 10
    assert {row.partition for number in range(6) for row in run.batches[number]} == {0, 1, 2, 3}


def test_the_client_says_how_far_rows_and_bytes_reach(mixed: Topic) -> None:
    client = Client({"bootstrap.servers": mixed.servers, "isolation.level": "read_committed"})
    (end,) = [offset for _, _, offset, _ in client.list_offsets([(mixed.name, 0, -1)])]
    whole, some, none = client.advance(
        [
            (mixed.name, 0, 0, end, None, None, False),
            (mixed.name, 0, 3, end, 12, None, False),
            (mixed.name, 0, 0, end, None, 1, False),
        ]
    )
    assert whole[:2] == (end, 30)
    # Seven of the first transaction, its marker, the aborted one and its marker, five of the next.
    assert some[:2] == (11 + 8 + 5, 12)
    assert none == (0, 0, 0)
    (forced,) = client.advance([(mixed.name, 0, 0, end, None, 1, True)])
    assert forced[1] > 0
    assert forced[2] > 1
    client.close()
