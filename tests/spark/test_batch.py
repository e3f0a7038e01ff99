"""spark.read.format("pylog")."""

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark.datasource import PylogDataSource
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.fixture
def three(topic: Topics) -> Topic:
    """Three partitions with 5, 3 and no records: a0..a4, b0..b2."""
    one = topic(partitions=3)
    one.put([f"a{number}" for number in range(5)], 0)
    one.put([f"b{number}" for number in range(3)], 1)
    return one


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


def test_each_log_partition_with_records_is_one_spark_partition(three: Topic) -> None:
    assert three.read().rdd.getNumPartitions() == 2


def test_an_empty_topic_is_an_empty_frame(topic: Topics) -> None:
    assert topic().read().collect() == []


def test_large_ranges_are_split_on_request_and_lose_nothing(three: Topic) -> None:
    split = three.read(minPartitions=6)
    assert split.rdd.getNumPartitions() >= 6
    assert split.count() == 8
    assert three.read(maxRecordsPerPartition=2).rdd.getNumPartitions() == 5
    assert sorted(three.values(maxRecordsPerPartition=2)) == sorted(three.values())


def test_offsets_given_for_each_partition_are_a_half_open_range(three: Topic) -> None:
    start = f'{{"{three.name}":{{"0":1,"1":-2,"2":-2}}}}'
    end = f'{{"{three.name}":{{"0":3,"1":1,"2":-1}}}}'
    assert three.values(startingOffsets=start, endingOffsets=end) == ["a1", "a2", "b0"]


def test_assign_reads_only_the_partitions_named(three: Topic) -> None:
    assert three.values(assign=f'{{"{three.name}":[1]}}') == ["b0", "b1", "b2"]


def test_a_pattern_reads_all_topics_in_whose_name_it_is_found(topic: Topics) -> None:
    one, two = topic(), topic()
    one.put(["1"])
    two.put(["2"])
    assert one.values(subscribePattern=f"{one.name[:-1]}\\p{{Digit}}") == ["1", "2"]
    assert one.values(subscribePattern=one.name[:-1]) == ["1", "2"]
    assert one.values(subscribePattern=f"^{one.name[:-1]}$") == []


def test_times_choose_the_first_record_at_or_after_them(topic: Topics) -> None:
    one = topic(retention_ms="-1")  # retention would take records as old as these
    one.put(["a", "b", "c"], timestamp=pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us", "UTC")))
    assert one.values(startingTimestamp=1_001) == ["b", "c"]
    assert one.values(startingTimestamp=1_000, endingTimestamp=2_001) == ["a", "b"]
    by_time = f'{{"{one.name}":{{"0":2000}}}}'
    assert one.values(startingOffsetsByTimestamp=by_time) == ["b", "c"]
    assert one.values(endingOffsetsByTimestamp=by_time) == ["a"]
    assert one.values(endingTimestamp=9_000) == ["a", "b", "c"]
    assert one.values(startingTimestamp=9_000, startingOffsetsByTimestampStrategy="latest") == []


def test_timestamps_keep_their_millisecond(topic: Topics) -> None:
    one = topic(retention_ms="-1")  # retention would take records as old as these
    one.put(["a"], timestamp=pa.array([1_700_000_000_123], pa.timestamp("ms", "UTC")))
    (row,) = one.read().selectExpr("unix_millis(timestamp) AS ms").collect()
    assert row.ms == 1_700_000_000_123
    moment = datetime.fromtimestamp(1_700_000_000.123, timezone.utc)
    assert one.read().where(f"timestamp = TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'").count() == 1


def test_headers_come_when_asked_for(topic: Topics) -> None:
    one = topic()
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    rows = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None]
    one.put(["a", "b"], headers=pa.array(rows, pa.list_(header)))
    assert "headers" not in one.read().columns
    first, second = one.read(includeHeaders=True).orderBy("offset").collect()
    assert [(part.key, part.value) for part in first.headers] == [("h", b"1"), ("h", None)]
    assert not second.headers


def test_a_null_value_and_an_empty_one_are_told_apart(topic: Topics) -> None:
    one = topic()
    one.put([None, b""], key=pa.array([b"k", b""], pa.binary()))
    rows = one.read().orderBy("offset").collect()
    assert [(row.key, row.value) for row in rows] == [(b"k", None), (b"", b"")]


@pytest.mark.parametrize(
    "schema",
    [
        "value binary",
        "offset bigint, value binary",
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


def test_only_the_columns_asked_for_are_built(three: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.types import _parse_datatype_string

    import pylog_spark._native as native
    from pylog_spark.datasource import PylogDataSource

    asked: list[list[str]] = []

    class Spy:
        error = None

        def __init__(self, *given: Any, **_: Any) -> None:
            asked.append(given[5])
            raise native.NativeError("UNREACHABLE", "enough seen;")

    monkeypatch.setattr(native, "RangeReader", Spy)
    source = PylogDataSource({"kafka.bootstrap.servers": three.servers, "subscribe": three.name})
    reader = source.reader(_parse_datatype_string("value binary, offset bigint"))
    with pytest.raises(Exception, match="enough seen"):
        list(reader.read(reader.partitions()[0]))
    assert asked == [["value", "offset"]]


def test_batches_are_cut_by_bytes(topic: Topics) -> None:
    one = topic()
    one.put(["x" * 1_000] * 2_000)
    # Spark shows no batch of a source, so the reader is asked as Spark's worker asks it.
    source = PylogDataSource({"kafka.bootstrap.servers": one.servers, "subscribe": one.name, "batchBytes": "100000"})
    reader = source.reader(one.read().schema)
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert sum(batch.num_rows for batch in batches) == 2_000
    assert len(batches) >= 20
    assert max(batch.nbytes for batch in batches) < 150_000


def test_two_reads_of_a_range_are_the_same(three: Topic) -> None:
    end = f'{{"{three.name}":{{"0":5,"1":3,"2":0}}}}'
    before = three.values(endingOffsets=end)
    three.put(["later"], 0)
    assert three.values(endingOffsets=end) == before
