"""`read_range` and `Producer.send_all`: ranges of a topic to Arrow and frames back, with what their users have: pyarrow, pandas, polars, duckdb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pylog_spark.client import Admin, Consumer, LogError, Producer, read_range
from tests.client.support import ALL_COLUMNS, values_batch, write

pytestmark = pytest.mark.cluster

_BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def topic(config: dict[str, str], new_topic: Callable[..., str]) -> str:
    """Two partitions of ten records, one a second; the first has none any more before offset 3."""
    name = new_topic(2, retention_ms="-1")  # or its records are too old
    stamps = pa.array([_BEGAN + timedelta(seconds=number) for number in range(10)], pa.timestamp("ms", "UTC"))
    for partition in (0, 1):
        rows = values_batch(
            [b"%d-%d" % (partition, number) for number in range(10)],
            key=pa.array([b"k%d" % number for number in range(10)]),
            partition=pa.array([partition] * 10, pa.int32()),
            timestamp=stamps,
        )
        write(config, name, rows)
    with Admin(config["bootstrap.servers"]) as admin:
        admin.delete_records([(name, 0, 3)])
    return name


def offsets(config: Mapping[str, str], topic: str, **places: Any) -> dict[int, list[int]]:
    """The offsets that a range has, by partition."""
    table = read_range(
        config["bootstrap.servers"], topic, columns=["partition", "offset"], config=config, **places
    ).read_all()
    found: dict[int, list[int]] = {}
    for row in table.to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    return found


def span(first: int, end: int) -> list[int]:
    return list(range(first, end))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ({}, {0: span(3, 10), 1: span(0, 10)}),
        ({"start": "latest"}, {}),
        ({"end": "earliest"}, {}),
        ({"start": 4, "end": 6}, {0: span(4, 6), 1: span(4, 6)}),
        ({"start": {1: 8}}, {0: span(3, 10), 1: span(8, 10)}),
        ({"end": {1: 2}}, {0: span(3, 10), 1: span(0, 2)}),
        ({"partitions": [1], "end": {1: 2}}, {1: span(0, 2)}),
        ({"start": _BEGAN + timedelta(seconds=7)}, {0: span(7, 10), 1: span(7, 10)}),
        ({"start": _BEGAN + timedelta(seconds=7, microseconds=1)}, {0: span(8, 10), 1: span(8, 10)}),
        ({"start": _BEGAN, "end": _BEGAN + timedelta(seconds=5)}, {0: span(3, 5), 1: span(0, 5)}),
        ({"start": _BEGAN + timedelta(days=1)}, {}),
    ],
)
def test_a_range_lies_between_two_places(
    config: dict[str, str], topic: str, places: dict[str, Any], expected: dict[int, list[int]]
) -> None:
    assert offsets(config, topic, **places) == expected


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ({"start": 2}, "Partition 0 of topic '{topic}' has no offset 2: it has 3 to 10."),
        ({"end": {1: 11}}, "Partition 1 of topic '{topic}' has no offset 11: it has 0 to 10."),
        ({"partitions": [1], "start": {0: 5}}, "Partition 0 of topic '{topic}' is not among those that are read."),
        ({"partitions": [2]}, "Topic '{topic}' has no partition 2: it has 0 to 1."),
        ({"start": "first"}, "start='first' is not earliest, latest, an offset or a datetime."),
        (
            {"end": datetime(2026, 1, 1)},
            "end=2026-01-01 00:00:00 has no time zone: give it one, such as timezone.utc.",
        ),
        (
            {"start": 8, "end": {0: 9, 1: 7}},
            "The range of partition 1 begins at offset 8, behind its end at 7: choose an earlier start or a later end.",
        ),
        (
            {"columns": ["value", "valeu"]},
            "A record has no column 'valeu': the columns are key, value, topic, partition, offset, timestamp, timestampType, headers.",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(
    config: dict[str, str], topic: str, places: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(LogError) as refused:
        read_range(config["bootstrap.servers"], topic, config=config, **places)
    assert str(refused.value) == sentence.format(topic=topic)


def test_a_consumer_begins_at_the_same_places(config: dict[str, str], topic: str) -> None:
    for start, expected in ((_BEGAN + timedelta(seconds=7), {0: 7, 1: 7}), ({0: 4, 1: 6}, {0: 4, 1: 6})):
        with Consumer(config["bootstrap.servers"], topic, start=start, follow=False, config=config) as consumer:
            assert consumer.starts == expected


def test_an_empty_range_has_the_schema_and_no_rows(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    table = read_range(config["bootstrap.servers"], new_topic(), config=config).read_all()
    assert (table.num_rows, table.column_names) == (0, list(ALL_COLUMNS))


def test_pandas_polars_and_duckdb_take_a_range_as_it_is(config: dict[str, str], topic: str) -> None:
    def rows() -> pa.RecordBatchReader:
        return read_range(config["bootstrap.servers"], topic, columns=["key", "value", "offset"], config=config)

    expected = [b"0-%d" % number for number in range(3, 10)] + [b"1-%d" % number for number in range(10)]
    assert list(rows().read_pandas()["value"]) == expected
    assert pl.from_arrow(rows())["value"].to_list() == expected
    (counted,) = duckdb.from_arrow(rows()).aggregate('count(*), sum(octet_length(value)), min("offset")').fetchall()
    assert counted == (17, sum(map(len, expected)), 0)


def test_frames_of_arrow_pandas_polars_and_duckdb_are_written_as_they_are(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    columns = {"key": ["a", "b"], "value": ["one", "two"], "other": [1, 2]}
    frame_of_arrow = pa.table(columns)
    frames: dict[str, Any] = {
        "table": frame_of_arrow,
        "batch": frame_of_arrow.to_batches()[0],
        "reader": frame_of_arrow.to_reader(),
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "duckdb": duckdb.from_arrow(frame_of_arrow),
    }
    for kind, frame in frames.items():
        name = new_topic()
        with Producer(config["bootstrap.servers"], name, config) as producer:
            producer.send(b"before")
            producer.send_all(frame)
            producer.send(b"after")
            assert producer.flush().records == 4, kind
        found = read_range(config["bootstrap.servers"], name, columns=["key", "value"], config=config).read_all()
        assert found["value"].to_pylist() == [b"before", b"one", b"two", b"after"], kind
        assert found["key"].to_pylist() == [None, b"a", b"b", None], kind


def test_a_frame_without_values_is_refused_and_nothing_of_it_is_written(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    name = new_topic()
    with Producer(config["bootstrap.servers"], name, config) as producer:
        with pytest.raises(LogError, match="value"):
            producer.send_all(pa.table({"key": ["a"]}))
        producer.send(b"good")
    assert read_range(config["bootstrap.servers"], name, config=config).read_all().num_rows == 1


def test_records_that_are_gone_meanwhile_are_an_error_of_ours(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    name = new_topic()
    write({**config, "batch.size": "1000"}, name, values_batch([b"x" * 900] * 20))
    reader = read_range(config["bootstrap.servers"], name, start=0, config=config)
    with Admin(config["bootstrap.servers"]) as admin:
        admin.delete_records([(name, 0, 15)])
    with pytest.raises(LogError) as lost:
        reader.read_all()
    assert (lost.value.kind, name in lost.value.sentence) == ("OFFSET_OUT_OF_RANGE", True)


def test_only_committed_records_are_read_where_that_is_asked(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    from pylog_spark._native import RecordWriter

    name = new_topic()
    write(config, name, values_batch([b"before"]))
    writer = RecordWriter(config, name, transactional_id=f"open-{name}")
    writer.begin()
    writer.write(values_batch([b"open"]))
    writer.flush()
    committed = {**config, "isolation.level": "read_committed"}
    for settings, expected in ((config, [b"before", b"open"]), (committed, [b"before"])):
        found = read_range(config["bootstrap.servers"], name, columns=["value"], config=settings).read_all()
        assert found["value"].to_pylist() == expected
    writer.end(commit=False)
    writer.close()
    assert read_range(config["bootstrap.servers"], name, config=committed).read_all().num_rows == 1
