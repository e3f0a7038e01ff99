"""Record batches against librdkafka's: any records, written by either side in any codec, come back as they were on the other.

Unlike the matrix, which shows that each pair of clients works, the records here are generated: no key, no value, empty ones,
bytes that are no text, repeated header names.
"""

import itertools
import time

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pylog_spark._native import RangeReader, RecordWriter
from tests.harness.runs import mostly_long
from tests.interop.clients import CODECS, DEADLINE_S, create_topic

pytestmark = pytest.mark.cluster

_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "timestamp": pa.timestamp("ms", "UTC"),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
)
_COLUMNS = ["key", "value", "timestamp", "headers"]

# Within what a topic keeps and accepts by default.
_NOW_MS = int(time.time() * 1000)

Row = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]

# librdkafka ends a header's name at a zero byte.
_NAME = st.characters(codec="utf-8", exclude_characters="\0")
_maybe_bytes = st.none() | st.binary(max_size=300)
_rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        _maybe_bytes,
        _maybe_bytes,
        st.integers(min_value=0, max_value=86_400_000).map(lambda age_ms: _NOW_MS - age_ms),
        st.lists(st.tuples(st.text(_NAME, min_size=1, max_size=20), _maybe_bytes), max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=40,
)
_number = itertools.count()
_any_records = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _new_topic(servers: str) -> str:
    topic = f"any-records-{next(_number)}"
    create_topic(servers, topic)
    return topic


def _read_by_pylog(servers: str, topic: str, count: int) -> list[Row]:
    reader = RangeReader({"bootstrap.servers": servers}, topic, 0, 0, count, _COLUMNS)
    table = pa.RecordBatchReader.from_stream(reader).read_all()
    headers = table.column("headers").to_pylist()
    return [
        (key, value, stamp // 1000, tuple((header["key"], header["value"]) for header in found or ()))
        for key, value, stamp, found in zip(
            table.column("key").to_pylist(),
            table.column("value").to_pylist(),
            table.column("timestamp").cast(pa.int64()).to_pylist(),
            headers,
            strict=True,
        )
    ]


def _read_by_librdkafka(servers: str, topic: str, count: int) -> list[Row]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "any", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(count, timeout=DEADLINE_S)
        return [
            (message.key(), message.value(), message.timestamp()[1], tuple(message.headers() or ()))
            for message in found
        ]
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", mostly_long(CODECS, "none", "zstd"))
@_any_records
@given(rows=_rows)
def test_any_records_of_librdkafka_are_read_as_they_were(servers: str, codec: str, rows: list[Row]) -> None:
    from confluent_kafka import Producer

    topic = _new_topic(servers)
    producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 0})
    for key, value, stamp, headers in rows:
        producer.produce(topic, value, key, 0, timestamp=stamp, headers=list(headers))
    assert producer.flush(DEADLINE_S) == 0
    assert _read_by_pylog(servers, topic, len(rows)) == rows


@pytest.mark.parametrize("codec", mostly_long(CODECS, "none", "zstd"))
@_any_records
@given(rows=_rows)
def test_any_records_of_pylog_are_read_by_librdkafka_as_they_were(servers: str, codec: str, rows: list[Row]) -> None:
    topic = _new_topic(servers)
    batch = pa.record_batch(
        [
            [key for key, *_ in rows],
            [value for _, value, *_ in rows],
            [stamp for _, _, stamp, _ in rows],
            [[{"key": name, "value": value} for name, value in headers] for *_, headers in rows],
        ],
        schema=_SCHEMA,
    )
    writer = RecordWriter({"bootstrap.servers": servers, "compression.type": codec}, topic)
    writer.write(batch)
    assert writer.flush()["records"] == len(rows)
    writer.close()
    assert _read_by_librdkafka(servers, topic, len(rows)) == rows
