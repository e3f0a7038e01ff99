"""Filters by option through Spark: a batch, and streams that go on where they stopped. The cases are in ``tests/reading``."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.spark.support import Collector, Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def put(one: Topic, partition: int, values: list[str], keys: list[bytes]) -> None:
    stamps = pa.array([1_000 * (1 + number) for number in range(len(values))], pa.timestamp("ms", "UTC"))
    one.put(values, partition, timestamp=stamps, key=pa.array(keys, pa.binary()))


def test_filters_of_a_batch_need_no_column_of_their_own(topic: Topics) -> None:
    one = topic(partitions=2, retention_ms="-1")
    for partition in (0, 1):
        put(one, partition, [f"{partition}{number}" for number in range(4)], [b"k", b"k", b"x", b"k"])
    options = {"filterPartition": "1", "filterTimestamp": "2000..", "filterKey": "k"}
    assert sorted(row.value for row in one.read("value binary", **options).collect()) == [b"11", b"13"]
    assert one.read(limit=3).count() == 3


def test_a_stream_is_filtered_and_shares_tasks_and_goes_on_where_it_stopped(topic: Topics, checkpoint: str) -> None:
    one = topic(partitions=2, retention_ms="-1")
    options = {"filterTimestamp": "2000..", "filterKey": "k", "filterOffset": "..5", "minRecordsPerPartition": "100"}
    run = Collector(checkpoint)
    found = []
    for first in (0, 3):
        for partition in (0, 1):
            last = b"k" if first == 0 else b"x"
            put(one, partition, [f"{partition}{first + number}" for number in range(3)], [b"k", b"k", last])
        run.run(one.read_stream(**options))
        found.append(run.values)
    assert found == [["01", "02", "11", "12"], ["01", "02", "04", "11", "12", "14"]]


def test_a_stream_whose_batches_hold_nothing_wanted_still_moves(topic: Topics, checkpoint: str) -> None:
    one = topic()
    run = Collector(checkpoint)
    for number in range(3):
        one.put([str(number)])
        run.run(one.read_stream(filterOffset="2.."))
    assert (run.values, len(run.batches)) == (["2"], 3)
