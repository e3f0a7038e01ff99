"""Conditions of a query as filters of a batch read, asked for with ``option("pushdown", "true")``.

A class of its own, because with ``spark.sql.python.filterPushdown.enabled=false``, Spark's default, a reader that defines
`pushFilters` fails every read (DATA_SOURCE_PUSHDOWN_DISABLED). Spark does not evaluate a condition again that the reader takes, so
the reader takes only conditions that it evaluates exactly as Spark does; the others stay with Spark.

Spark (up to 4.3) keeps the reader of a query with the loaded frame, and uses it again for a later query that pushes nothing.
The reader cannot detect that, so the documentation says to load the frame anew for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyspark.sql.datasource as spark

from pylog_spark.columns import READ_COLUMNS
from pylog_spark.errors import PylogError
from pylog_spark.offsets.filters import IN, RANGE, BytesTest, RecordFilter, compared_bytes
from pylog_spark.offsets.spans import Spans, compared
from pylog_spark.source.batch import PylogReader
from pylog_spark.source.held_back import Release
from pylog_spark.typed.conditions import COMPARISONS, as_test

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from pylog_spark.options import ReadOptions
    from pylog_spark.source.partition import RangeSource

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS = timedelta(milliseconds=1)
_AS_THEY_ARE = {name: name for name in READ_COLUMNS}


class PushdownReader(PylogReader):
    """A batch reader that takes conditions of the query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the conditions that are understood and give back the others."""
        source, left, tests = self._source, [], []
        of_record, wanted = source.record_columns(), source.wanted
        # A limit counts records before the decoder's conditions, and after those on the record itself.
        decoded = source.typed.decoded_kinds() if source.typed is not None and source.limit is None else {}
        for condition in filters:
            understood = as_filter(condition, of_record)
            if understood is not None:
                wanted = wanted & understood
            elif test := as_test(condition, decoded):
                tests.append(test)
            else:
                left.append(condition)
        typed = None if source.typed is None else source.typed.with_tests(tests)
        self._source = replace(source, wanted=wanted, typed=typed)
        return left


def pushdown_reader(options: ReadOptions, source: RangeSource, release: Release | None = None) -> PylogReader:
    """Give a `PushdownReader`, or say that this version of Spark has no such thing."""
    if not hasattr(spark, "Filter"):
        raise PylogError(
            "PYLOG_UNSUPPORTED_SPARK",
            "The option pushdown needs Spark 4.1 or later; leave it out and use filterPartition, filterOffset, "
            "filterTimestamp and filterKey.",
        )
    return PushdownReader(options, source, release)


def as_filter(condition: Filter, of_record: Mapping[str, str] = _AS_THEY_ARE) -> RecordFilter | None:
    """Give the filter that takes exactly the rows for which `condition` is true; None when Spark must evaluate it.

    Parameters
    ----------
    condition : Filter
        Spark's.
    of_record : mapping of str to str
        The columns that show a record's as it is: their names -> the record's. A condition on another one stays with Spark.
    """
    name = type(condition).__name__
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    column = of_record.get(attribute[0], "") if len(attribute) == 1 else ""
    if name in ("IsNull", "IsNotNull"):
        return _of_null(column, wanted=name == "IsNull")
    understand = _COLUMNS.get(column)
    value = getattr(condition, "value", None)
    if understand is None or value is None:
        return None
    if name == "In":
        # With a null among the values the condition is null instead of false, which selects the same rows.
        values = [item for item in value if item is not None]
        return understand("in", values) if values else None
    comparison = COMPARISONS.get(name)
    return None if comparison is None else understand(comparison, [value])


def _of_null(column: str, *, wanted: bool) -> RecordFilter | None:
    if column == "key":
        return RecordFilter(keys=(BytesTest(IN, (None,)) if wanted else BytesTest(RANGE, (None, None)),))
    if column in _COLUMNS:  # a record always has these
        return RecordFilter(partitions=Spans.of([])) if wanted else RecordFilter()
    return None


def _of_partition(comparison: str, values: list[Any]) -> RecordFilter | None:
    spans = _spans(comparison, values)
    return None if spans is None else RecordFilter(partitions=spans)


def _of_offset(comparison: str, values: list[Any]) -> RecordFilter | None:
    spans = _spans(comparison, values)
    return None if spans is None else RecordFilter(offsets=spans)


def _of_timestamp(comparison: str, values: list[Any]) -> RecordFilter | None:
    """The column has microseconds and records have milliseconds, so ``= ...000001`` is true of no record."""
    if not all(isinstance(value, datetime) and value.tzinfo is not None for value in values):
        return None
    # (ms before or at the value, whether it is the value)
    at = [((value - _EPOCH) // _MS, not (value - _EPOCH) % _MS) for value in values]
    if comparison in ("=", "in"):
        return RecordFilter(timestamps=Spans.only(ms for ms, whole in at if whole))
    ((ms, whole),) = at
    # In whole milliseconds, < 5.3 is <= 5, and >= 5.3 is > 5.
    rounded = {"<": "<" if whole else "<=", ">=": ">=" if whole else ">"}.get(comparison, comparison)
    spans = _spans(rounded, [ms])
    return None if spans is None else RecordFilter(timestamps=spans)


def _of_key(comparison: str, values: list[Any]) -> RecordFilter | None:
    if not all(isinstance(value, (bytes, bytearray)) for value in values):
        return None
    return RecordFilter(keys=(compared_bytes(comparison, [bytes(value) for value in values]),))


def _of_topic(comparison: str, values: list[Any]) -> RecordFilter | None:
    if not all(isinstance(value, str) for value in values):
        return None
    return RecordFilter(topics=(compared_bytes(comparison, [value.encode() for value in values]),))


_COLUMNS: dict[str, Callable[[str, list[Any]], RecordFilter | None]] = {
    "partition": _of_partition,
    "offset": _of_offset,
    "timestamp": _of_timestamp,
    "key": _of_key,
    "topic": _of_topic,
}


def _spans(comparison: str, values: list[Any]) -> Spans | None:
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return compared(comparison, values) if whole else None
