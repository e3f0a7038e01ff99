"""Conditions of a query as filters: each is taken exactly, or left to Spark."""

from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyspark.sql.datasource as spark
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.filters import RecordFilter
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.source.pushdown import as_filter

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None

    def column(self, name: str) -> Any:
        """As Spark sees it: timestamps in microseconds."""
        if name == "timestamp":
            return EPOCH + timedelta(milliseconds=self.timestamp_ms)
        return getattr(self, name)


def takes(wanted: RecordFilter, record: Record) -> bool:
    place = TopicPartition(record.topic, record.partition)
    return (
        bool(wanted.cut([OffsetRange(place, record.offset, record.offset + 1)]))
        and record.timestamp_ms in wanted.timestamps
        and all(test.takes(record.key) for test in wanted.keys)
    )


def is_true(condition: Any, record: Record) -> bool:
    """What SQL says: a comparison with null is not true."""
    name, value = type(condition).__name__, record.column(condition.attribute[0])
    if name in ("IsNull", "IsNotNull"):
        return (value is None) == (name == "IsNull")
    if value is None:
        return False
    if name == "In":
        return value in [item for item in condition.value if item is not None]
    return {
        "EqualTo": lambda: value == condition.value,
        "EqualNullSafe": lambda: value == condition.value,
        "LessThan": lambda: value < condition.value,
        "LessThanOrEqual": lambda: value <= condition.value,
        "GreaterThan": lambda: value > condition.value,
        "GreaterThanOrEqual": lambda: value >= condition.value,
    }[name]()


KEY = st.binary(max_size=2)
NUMBER = st.integers(-3, 3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.text("ab\u00e4\U0001f600\ue000", max_size=2),
    "partition": NUMBER,
    "offset": NUMBER | st.integers(2**63 - 3, 2**63 - 1),
    "timestamp": st.integers(-3_000, 3_000).map(lambda micros: EPOCH + timedelta(microseconds=micros)),
    "key": KEY,
}
RECORD = st.builds(Record, VALUES["topic"], st.integers(0, 3), st.integers(0, 3), st.integers(-1, 3), st.none() | KEY)
COMPARISONS = (
    spark.EqualTo,
    spark.EqualNullSafe,
    spark.LessThan,
    spark.LessThanOrEqual,
    spark.GreaterThan,
    spark.GreaterThanOrEqual,
)


@st.composite
def conditions(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(sorted(VALUES)))
    kind = draw(st.sampled_from([*COMPARISONS, spark.In, spark.IsNull, spark.IsNotNull]))
    if kind in (spark.IsNull, spark.IsNotNull):
        return kind((name,))
    if kind is spark.In:
        values = draw(st.lists(VALUES[name], min_size=1, max_size=4))
        return spark.In((name,), (*values, *draw(st.sampled_from([(), (None,)]))))
    return kind((name,), draw(VALUES[name]))


@given(conditions(), st.lists(RECORD, min_size=1, max_size=10))
def test_exactly_the_records_for_which_a_condition_is_true_are_taken(condition: Any, records: list[Record]) -> None:
    wanted = as_filter(condition)
    assert wanted is not None
    for record in records:
        assert takes(wanted, record) == is_true(condition, record), (condition, record)


@given(st.lists(conditions(), max_size=3), st.lists(RECORD, min_size=1, max_size=10))
def test_conditions_together_must_all_be_true(several: list[Any], records: list[Record]) -> None:
    wanted = RecordFilter()
    for condition in several:
        wanted = wanted & (as_filter(condition) or pytest.fail(str(condition)))
    for record in records:
        assert takes(wanted, record) == all(is_true(condition, record) for condition in several)


@pytest.mark.parametrize(
    "condition",
    [
        spark.Not(spark.EqualTo(("partition",), 1)),
        spark.EqualTo(("value",), b"x"),
        spark.IsNull(("value",)),
        spark.EqualTo(("timestampType",), 0),
        spark.EqualTo(("headers", "key"), "k"),
        spark.EqualTo(("key",), "text"),
        spark.EqualTo(("key",), None),
        spark.EqualNullSafe(("key",), None),
        spark.In(("key",), (None,)),
        spark.EqualTo(("partition",), True),
        spark.EqualTo(("offset",), 1.0),
        spark.EqualTo(("timestamp",), datetime(2026, 1, 1)),
        spark.StringStartsWith(("topic",), "t"),
    ],
    ids=str,
)
def test_what_is_not_understood_exactly_stays_with_spark(condition: Any) -> None:
    assert as_filter(condition) is None
