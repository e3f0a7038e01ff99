"""spark.read.format("pylog"): what a frame holds. Where a read begins and ends, and its tasks: ``tests/reading``."""

from collections.abc import Callable
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def three(make_topic: Topics) -> Topic:
    """Three partitions with 5, 3 and no records: a0..a4, b0..b2."""
    topic = make_topic(partitions=3)
    topic.put([f"a{number}" for number in range(5)], 0)
    topic.put([f"b{number}" for number in range(3)], 1)
    return topic


def test_a_topic_is_read_from_beginning_to_end_with_sparks_columns(three: Topic) -> None:
    frame = three.read()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    rows = frame.orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        *((0, number, f"a{number}".encode()) for number in range(5)),
        *((1, number, f"b{number}".encode()) for number in range(3)),
    ]
    assert {(row.topic, row.timestampType, row.key) for row in rows} == {(three.name, 0, None)}


def test_timestamps_keep_their_millisecond(make_topic: Topics) -> None:
    topic = make_topic(retention_ms="-1")  # retention would take records as old as these
    topic.put(["a"], timestamp=pa.array([1_700_000_000_123], pa.timestamp("ms", "UTC")))
    (row,) = topic.read().selectExpr("unix_millis(timestamp) AS ms").collect()
    assert row.ms == 1_700_000_000_123
    moment = datetime.fromtimestamp(1_700_000_000.123, timezone.utc)
    assert topic.read().where(f"timestamp = TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'").count() == 1


def test_headers_come_when_asked_for(make_topic: Topics) -> None:
    topic = make_topic()
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    rows = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None]
    topic.put(["a", "b"], headers=pa.array(rows, pa.list_(header)))
    assert "headers" not in topic.read().columns
    first, second = topic.read(includeHeaders=True).orderBy("offset").collect()
    assert [(part.key, part.value) for part in first.headers] == [("h", b"1"), ("h", None)]
    assert not second.headers


def test_a_null_value_and_an_empty_one_stay_different(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put([None, b""], key=pa.array([b"k", b""], pa.binary()))
    rows = topic.read().orderBy("offset").collect()
    assert [(row.key, row.value) for row in rows] == [(b"k", None), (b"", b"")]


@pytest.mark.parametrize(
    "schema",
    [
        "timestampType int, partition int, topic string, key binary",
        "headers array<struct<key:string,value:binary>>, offset bigint",
        "value binary NOT NULL",
    ],
)
def test_a_schema_with_fewer_columns_gives_only_those_in_its_order(three: Topic, schema: str) -> None:
    frame = three.read(schema)
    assert frame.columns == [part.split()[0] for part in schema.replace("key:", "").split(", ")]
    assert frame.count() == 8
    assert len(frame.collect()[0]) == len(frame.columns)


def test_filters_by_option_need_no_column_of_their_own(make_topic: Topics) -> None:
    topic = make_topic(partitions=2, retention_ms="-1")
    stamps = pa.array([1_000, 2_000, 3_000, 4_000], pa.timestamp("ms", "UTC"))
    keys = pa.array([b"k", b"k", b"x", b"k"], pa.binary())
    for partition in (0, 1):
        topic.put([f"{partition}{number}" for number in range(4)], partition, timestamp=stamps, key=keys)
    options = {"filterPartition": "1", "filterTimestamp": "2000..", "filterKey": "k"}
    assert sorted(row.value for row in topic.read("value binary", **options).collect()) == [b"11", b"13"]
    assert topic.read(limit=3).count() == 3
