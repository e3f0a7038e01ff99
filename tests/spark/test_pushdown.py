"""Conditions of a query that the read takes over (``pushdown``): the same rows as Spark finds by itself, from fewer bytes."""

import functools
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, IsNotNull

from tests.harness.runs import rounds
from tests.reading.support import fetched, reader
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]

KEYS = [b"", b"\x00", b"a", b"aa", b"ab", b"b", b"\x7f", b"\x80", b"\xff\xff", None]
COLUMNS = ("topic", "partition", "offset", "timestamp", "key")
CONDITIONS = rounds("PYLOG_PUSHDOWN_CONDITIONS", 12, 40)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def mixed(make_topic: Topics) -> Topic:
    """Three partitions of 20 records: every key, timestamps in no order."""
    topic = make_topic(partitions=3, retention_ms="-1")
    chance = random.Random(1)
    for partition in range(3):
        for start in (0, 10):
            stamps = [chance.randrange(0, 6) for _ in range(10)]
            topic.put(
                [f"{partition}-{start + number}" for number in range(10)],
                partition,
                key=pa.array(chance.sample(KEYS, 10), pa.binary()),
                timestamp=pa.array(stamps, pa.timestamp("ms", "UTC")),
            )
    return topic


def literal(chance: random.Random, column: str, topic: str) -> str:
    if column == "topic":
        return repr(chance.choice([topic, topic[:-1], topic + "a", ""]))
    if column == "key":
        return f"X'{chance.choice([key for key in KEYS if key is not None]).hex()}'"
    if column == "timestamp":
        moment = EPOCH + timedelta(microseconds=chance.choice([0, 999, 1_000, 2_001, 3_000, 4_000, 5_500]))
        return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    return str(chance.randrange(-1, 4 if column == "partition" else 21))


def condition(chance: random.Random, topic: str) -> str:
    column = chance.choice(COLUMNS)
    kind = chance.choice(["=", "<=>", "<", "<=", ">", ">=", "in", "in null", "null", "not null", "or", "not"])
    first, second = literal(chance, column, topic), literal(chance, column, topic)
    return {
        "in": f"{column} in ({first}, {second})",
        "in null": f"{column} in ({first}, null)",
        "null": f"{column} is null",
        "not null": f"{column} is not null",
        "or": f"({column} = {first} or value = X'00')",
        "not": f"not {column} <= {first}",
    }.get(kind, f"{column} {kind} {first}")


def test_random_conditions_give_the_rows_that_spark_finds_by_itself(mixed: Topic, pushdown: None) -> None:
    chance = random.Random(20)
    said = [
        " and ".join(condition(chance, mixed.name) for _ in range(chance.choice([1, 1, 2, 3])))
        for _ in range(CONDITIONS)
    ]
    # All in one query, each with a read of its own.
    asked = [
        mixed.read(pushdown="true", minRecordsPerPartition=1_000)
        .where(text)
        .selectExpr(str(number), "partition", "offset")
        for number, text in enumerate(said)
    ]
    found = {tuple(row) for row in functools.reduce(lambda frame, other: frame.union(other), asked).collect()}
    whole = mixed.read(minRecordsPerPartition=1_000)
    rows = whole.selectExpr("partition", "offset", *(f"({text}) AS c{number}" for number, text in enumerate(said)))
    expected = {
        (number, row.partition, row.offset) for row in rows.collect() for number in range(CONDITIONS) if row[2 + number]
    }
    for number, text in enumerate(said):
        wanted = {row for row in expected if row[0] == number}
        assert {row for row in found if row[0] == number} == wanted, text
    counts = Counter(number for number, *_ in expected)
    assert sum(0 < count < 60 for count in counts.values()) >= CONDITIONS / 4


def test_a_condition_that_is_taken_is_not_looked_at_by_spark_again(mixed: Topic, pushdown: None) -> None:
    def plan(said: str) -> str:
        frame = mixed.read(pushdown="true").where(said)
        return str(frame._jdf.queryExecution().executedPlan().toString())

    assert "Filter" in plan("value = X'00'")
    taken = plan("partition = 1 and offset >= 3 and key = X'61' and timestamp < TIMESTAMP '2000-01-01 00:00:00'")
    assert "Filter (" not in taken


def test_a_loaded_frame_is_good_for_one_query_only_as_the_documentation_warns(mixed: Topic, pushdown: None) -> None:
    # Spark (PythonDataSourceV2.readInfo) keeps the reader of a query that pushed conditions for later queries of the same
    # loaded frame that push none. When this fails, Spark has stopped doing so, and the warnings can go.
    frame = mixed.read(pushdown="true")
    assert frame.where("partition = 1").count() == 20
    assert frame.count() == 20
    assert mixed.read(pushdown="true").count() == 60


def test_without_sparks_setting_spark_refuses_and_names_it(mixed: Topic) -> None:
    with pytest.raises(Exception, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        mixed.read(pushdown="true").count()


def test_conditions_skip_what_they_rule_out(make_topic: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(retention_ms="-1", segment_bytes="1048576")
    for start in range(0, 400, 20):
        stamps = pa.array([1_000 * (start + number) for number in range(20)], pa.timestamp("ms", "UTC"))
        topic.put([b"x" * 10_000] * 20, timestamp=stamps)
    _, whole = fetched(topic, monkeypatch)
    for wanted in (
        [IsNotNull(("offset",)), GreaterThanOrEqual(("offset",), 390)],
        [GreaterThanOrEqual(("timestamp",), EPOCH + timedelta(seconds=389, microseconds=1))],
    ):
        made = reader(topic, "value", pushdown="true")
        assert list(made.pushFilters(wanted)) == []
        some, part = fetched(topic, monkeypatch, made=made)
        assert len(some) == 10
        assert part < whole / 5
    made = reader(topic, "value", pushdown="true")
    left = EqualTo(("value",), b"x")
    assert list(made.pushFilters([left, EqualTo(("partition",), 1)])) == [left]
    assert fetched(topic, monkeypatch, made=made) == ([], 0)
