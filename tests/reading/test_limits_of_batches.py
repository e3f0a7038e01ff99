"""Limits of a micro-batch counted in what a reader sees: rows and stored bytes, on logs with markers, aborted transactions and
holes of compaction. Through Spark: ``tests/spark/test_limits.py``; Spark's connector on Apache Kafka: ``tests/parity/test_limits.py``."""

import math
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY

import pyarrow as pa
import pytest

from pylog_spark._native import Client
from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.reading.damage import Own
from tests.reading.streams import BOTH_WAYS, Query, read
from tests.spark.support import Topic, transactions

pytestmark = [pytest.mark.cluster, BOTH_WAYS]

Topics = Callable[..., Topic]


@pytest.fixture
def mixed(make_topic: Topics) -> Topic:
    """30 rows for readers of committed data in 5 transactions, 2 of them aborted, and 10 plain rows in partition 1."""
    topic = make_topic(partitions=2)
    transactions(topic, (10, True), (7, False), (15, True), (9, False), (5, True))
    topic.put([f"plain-{number}" for number in range(10)], 1)
    return topic


def test_every_batch_has_exactly_as_many_rows_as_allowed_while_there_are_enough(mixed: Topic) -> None:
    run = read(mixed, maxRecordsPerTrigger=7, **{"kafka.isolation.level": "read_committed"})
    assert run.sizes == [7, 7, 7, 7, 7, 5]
    assert len(set(run.values)) == 40


def test_a_reader_of_all_data_counts_aborted_records_and_no_markers(mixed: Topic) -> None:
    run = read(mixed, maxRecordsPerTrigger=20, **{"kafka.isolation.level": "read_uncommitted"})
    assert run.sizes == [20, 20, 16]


def test_holes_of_compaction_are_not_counted(tmp_path: Path) -> None:
    with Brokers(tmp_path / "broker", log_cleaner_backoff_ms=50) as broker:
        own = Own(broker)
        # From the beginning: a leader that hears of the setting late would not roll what is to be compacted.
        # With any ratio above 0 a last segment of a few records would wait when all before it are compacted already.
        topic = own.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_ms="1")
        keys = [f"k{number % 50 if number % 3 else number}" for number in range(3000)]
        topic.put([f"{number}" for number in range(3000)], key=pa.array([key.encode() for key in keys], pa.binary()))
        topic.put(["last"], key=pa.array([b"last"], pa.binary()))
        rows = len(set(keys)) + 1
        compacted = [(3001, rows, ANY)]
        until(
            lambda: topic.client.advance([(topic.name, 0, 0, 3001, None, None, False)]) == compacted, "it is compacted"
        )
        run = read(topic, maxRecordsPerTrigger=300)
        assert sum(run.sizes) == rows
        assert run.sizes[:-1] == [300] * (math.ceil(rows / 300) - 1)


def test_a_limit_in_bytes_takes_whole_stored_batches(make_topic: Topics) -> None:
    topic = make_topic()
    for number in range(6):
        topic.put([f"{number}" * 1000] * 10)
    run = read(topic, maxBytesPerTrigger="25k")
    assert run.sizes == [20, 20, 20]


def test_a_stored_batch_larger_than_the_limit_is_taken_alone(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1, 0):
        topic.put(["v" * 1000] * 10, partition)
    run = read(topic, maxBytesPerTrigger=100)
    assert run.sizes == [10, 10, 10]


def test_of_several_limits_the_first_reached_holds(make_topic: Topics) -> None:
    topic = make_topic()
    for _ in range(4):
        topic.put(["v" * 100] * 10)
    run = read(topic, maxRecordsPerTrigger=15, maxBytesPerTrigger="1m", maxOffsetsPerTrigger=8)
    assert run.sizes == [8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    "limits",
    [{"maxRecordsPerTrigger": 3, "maxBytesPerTrigger": 1}, {"maxOffsetsPerTrigger": 1, "minOffsetsPerTrigger": 1}],
    ids=["records and bytes", "offsets"],
)
def test_trigger_once_takes_everything_whatever_the_limits(make_topic: Topics, limits: dict[str, int]) -> None:
    topic = make_topic()
    topic.put(["a"] * 10)
    run = Query(topic, limited=False, **limits)
    assert run.trigger()
    run.stop()
    assert run.sizes == [10]


def test_available_now_with_a_fewest_ends_all_the_same(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    assert read(topic, minOffsetsPerTrigger=5, maxTriggerDelay="1ms").values == ["a"]


def test_a_rate_limit_cuts_batches_and_reads_everything(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    topic.put([f"{number:03}" for number in range(90)], 0)
    topic.put(["zzz"], 1)
    run = read(topic, maxOffsetsPerTrigger=30)
    assert max(run.sizes) <= 31
    assert len(run.sizes) == 4
    assert {row.partition for row in run.batches[0]} == {0, 1}, "a small partition must not be starved"
    assert run.values == [*(f"{number:03}" for number in range(90)), "zzz"]


def test_fewer_rows_than_partitions_starve_none(make_topic: Topics) -> None:
    topic = make_topic(partitions=4)
    for partition in range(4):
        topic.put(["v"] * 5, partition)
    run = read(topic, maxRecordsPerTrigger=2)
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
