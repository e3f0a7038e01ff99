"""Batch reads: the columns, which partitions, from where to where, and how they are cut into Spark's partitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.ways import BASE_MS, PLACE, Record, Way, outcome

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


def three(way: Way) -> None:
    """Partitions of 10, 10 and 1 records, valued 0 to 20."""
    way.topic("t", 3)
    way.put("t", [f"{n}" for n in range(10)], 0)
    way.put("t", [f"{n}" for n in range(10, 20)], 1)
    way.put("t", ["20"], 2)


def numbers(rows: list[tuple[Any, ...]]) -> list[int]:
    """The values of rows as numbers, sorted."""
    return sorted(int(row[PLACE.index("value")]) for row in rows)


@pytest.mark.parametrize("headers", [None, "false", "true"])
def test_the_schema_has_the_same_columns_types_and_nullability(ways: Ways, headers: str | None) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        frames = [
            reader.load() for reader in (way.reader(includeHeaders=headers), way.stream_reader(includeHeaders=headers))
        ]
        return [frame.schema.json() for frame in frames]

    batch, stream = ways.same(scenario)
    assert batch == stream
    assert ('"headers"' in batch) == (headers == "true")


def test_ends_are_the_defaults_words_or_numbers(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        three(way)
        ends = {
            "defaults": {},
            "words": {"startingOffsets": "earliest", "endingOffsets": "latest"},
            "words in any case": {"startingoffsets": "eArliest", "ENDINGOFFSETS": "LATEST"},
            "numbers": {
                "startingOffsets": way.json({"t": {"0": -2, "1": -2, "2": 0}}),
                "endingOffsets": way.json({"t": {"0": -1, "1": -1, "2": 1}}),
            },
            "a range": {
                "startingOffsets": way.json({"t": {"0": 3, "1": 9, "2": 0}}),
                "endingOffsets": way.json({"t": {"0": 3, "1": -1, "2": -1}}),
            },
            "only an end": {"endingOffsets": way.json({"t": {"0": 2, "1": 1, "2": 0}})},
        }
        return {name: way.read(**options) for name, options in ends.items()}

    seen = {name: numbers(rows) for name, rows in ways.same(scenario).items()}
    for name in ("defaults", "words", "words in any case", "numbers"):
        assert seen[name] == [*range(21)], name
    assert seen["a range"] == [19, 20]
    assert seen["only an end"] == [0, 1, 10]


def test_the_ends_of_a_frame_are_bound_once(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["0", "1"])
        frame = way.reader(startingOffsets="earliest", endingOffsets="latest").load()
        before = numbers(way.rows(frame))
        way.put("t", ["2"])
        return before, numbers(way.rows(frame)), numbers(way.read())

    connector, pylog = ways.differ("a frame that is read again", scenario)
    assert connector == ([0, 1], [0, 1, 2], [0, 1, 2])
    assert pylog == ([0, 1], [0, 1], [0, 1, 2])


def test_a_read_begins_with_what_is_left(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", [f"{n}" for n in range(10)])
        way.delete_before("t", 0, 7)
        return numbers(way.read(startingOffsets="earliest"))

    assert ways.same(scenario) == [7, 8, 9]


def test_a_frame_used_twice_reads_twice(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", ["a", "b"])
        frame = way.reader().load().select("value")
        return sorted(bytes(row.value) for row in frame.union(frame).collect())

    assert ways.same(scenario) == [b"a", b"a", b"b", b"b"]


def test_keys_values_and_headers_may_be_null_or_empty(ways: Ways) -> None:
    records = [
        Record(None),
        Record("", ""),
        Record("no headers", "k"),
        Record("empty", headers=[]),
        Record(b"\x00\xff", b"\xfe", BASE_MS + 1, [("a", b"b"), ("a", b""), ("", None), ("é", b"\xc3")]),
        Record(None, "tombstone"),
    ]

    def scenario(way: Way) -> object:
        way.topic()
        way.put("t", records)
        return way.read((*COLUMNS, "headers"), includeHeaders="true")

    rows = ways.same(scenario)
    assert [(row[0], row[1]) for row in rows][:3] == [(None, None), (b"", b""), (b"k", b"no headers")]
    assert [row[-1] for row in rows][2:4] == [None, None]
    assert rows[4][-1][2] == ("", None)


def test_the_time_of_a_record_is_its_own_or_the_logs(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        seen = {}
        for kind in ("CreateTime", "LogAppendTime"):
            way.topic(kind, 1, message_timestamp_type=kind)
            way.put(kind, [Record("a", None, BASE_MS + 123), Record("b", None, BASE_MS + 456)])
            rows = way.read(("timestamp", "timestampType"), subscribe=way.name(kind))
            seen[kind] = [
                (number, "the broker's" if kind == "LogAppendTime" and time.year > 2023 else time)
                for time, number in rows
            ]
        return seen

    seen = ways.same(scenario)
    assert [number for number, _ in seen["CreateTime"]] == [0, 0]
    assert [number for number, _ in seen["LogAppendTime"]] == [1, 1]
    assert [time.microsecond for _, time in seen["CreateTime"]] == [123_000, 456_000]


def test_topics_are_chosen_by_name_by_partition_or_by_pattern(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        for word in ("a-1", "a-2", "b-1"):
            way.topic(word, 2)
            way.put(word, [f"{word}.0"], 0)
            way.put(word, [f"{word}.1"], 1)
        choices = {
            "two names": {"subscribe": f" {way.name('b-1')}, {way.name('a-1')},"},
            "partitions": {"assign": way.json({"a-1": [1], "b-1": [0]})},
            "a pattern": {"subscribePattern": way.name("a-.*")},
            "part of a name": {"subscribePattern": "^" + way.name("a")},
            "a choice": {"subscribePattern": f" ({way.name('a-1')}|{way.name('b-[0-9]+')}) "},
        }
        return {name: [row[-1].decode() for row in way.read(**options)] for name, options in choices.items()}

    seen = ways.same(scenario)
    assert seen["two names"] == ["a-1.0", "a-1.1", "b-1.0", "b-1.1"]
    assert seen["partitions"] == ["a-1.1", "b-1.0"]
    assert seen["part of a name"] == ["a-1.0", "a-1.1", "a-2.0", "a-2.1"]


def test_a_pattern_leaves_out_internal_topics_by_the_brokers_flag(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        producer = way.transactional()  # makes __transaction_state
        producer.begin_transaction()
        producer.produce(way.name(), "committed", partition=0, timestamp=BASE_MS)
        producer.commit_transaction()
        way.await_markers()
        mine = f"__{way.name('mine')}"
        (answer,) = way.client.create_topics(
            [{"name": mine, "num_partitions": 1, "replication_factor": 1, "configs": {}}]
        )
        assert answer["error"] is None
        way.wait_until(lambda: way.client.describe_topics([mine])[0]["error"] is None)
        pattern = f"(__transaction_state|__consumer_offsets|{mine}|{way.name()})"
        frame = way.reader(subscribePattern=pattern, kafka_isolation_level="read_committed").load()
        return [row[0] for row in way.rows(frame, ("topic",))]

    assert ways.same(scenario) == ["t"]


def test_an_empty_topic_is_an_empty_frame(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("t", 3)
        return way.read()

    assert ways.same(scenario) == []


def pieces(frame: Any) -> list[tuple[int, int, int]]:
    """(log partition, first offset, records) of each Spark partition that has any."""
    from pyspark.sql.functions import count, min, spark_partition_id  # noqa: A004

    cut = frame.groupBy(spark_partition_id().alias("piece"), "partition").agg(min("offset"), count("*"))
    return sorted(tuple(row)[1:] for row in cut.collect())


@pytest.mark.parametrize(
    "options",
    [
        {"minPartitions": "6"},
        {"minPartitions": "2"},
        {"minPartitions": "23"},
        {"minPartitions": "9", "maxRecordsPerPartition": "3"},
    ],
    ids=lambda options: "-".join(f"{name}{value}" for name, value in options.items()),
)
def test_large_ranges_are_cut_at_the_same_offsets(ways: Ways, options: dict[str, str]) -> None:
    def scenario(way: Way) -> object:
        three(way)
        return pieces(way.reader(**options).load())

    cut = ways.same(scenario)
    assert sum(count for _, _, count in cut) == 21
    assert len(cut) >= 3


def test_the_most_records_of_a_task_hold_whatever_else_is_said(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        three(way)
        return [count for _, _, count in pieces(way.reader(maxRecordsPerPartition="4").load())]

    connector, pylog = ways.differ("maxRecordsPerPartition alone in a batch", scenario)
    assert connector == [10, 10, 1]
    assert pylog == [3, 3, 4, 3, 3, 4, 1]


def test_a_time_that_spark_cannot_hold_stops_no_read(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("t", 1, message_timestamp_after_max_ms=f"{2**63 - 1}")
        way.put("t", [Record("nanoseconds", None, 1_712_345_678_123_456_789)])
        return outcome(lambda: way.read(("value",)), "overflows when converting")

    assert ways.differ("a time that Spark cannot hold", scenario) == ("refused", [(b"nanoseconds",)])
