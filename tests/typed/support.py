"""Typed reads as Spark's planner and workers do them, in this process; and Spark's types as values that hypothesis draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pylog_spark.datasource import PylogDataSource
from tests.harness import runs
from tests.spark.support import Topic

NAMES = ("a", "b", "c", "d")
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)


def examples(few: int, many: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test that hypothesis draws for `few` times, `many` in a long run, by the commit's seed."""
    runner = settings(
        max_examples=runs.rounds("PYLOG_TYPED_EXAMPLES", few, many),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        **more,
    )
    return lambda test: seeded(runs.seed("PYLOG_TYPED_SEED"))(runner(test))


def schema(**fields: DataType) -> StructType:
    """The schema of these columns."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def read(topic: Topic, columns: StructType, **options: Any) -> pa.Table:
    """What a batch read gives; its tasks run in this process."""
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name}
    reader: Any = PylogDataSource({**given, **{name: str(text) for name, text in options.items()}}).reader(columns)
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return pa.Table.from_batches(batches) if batches else None


def rows(topic: Topic, columns: StructType, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of `read`."""
    table = read(topic, columns, **options)
    return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]


def as_pysparks(columns: Any) -> StructType:
    """Columns of ours as pyspark's."""
    return StructType.fromJson(json.loads(columns.json()))


def shown(column: pa.ChunkedArray) -> str:
    """All of a column as text: NaN is NaN, years beyond Python's are shown, an entry of a map stands where it stood."""
    return str(column.combine_chunks().to_string(window=10_000, container_window=10_000))


_SCALARS: list[DataType] = [
    StringType(),
    BooleanType(),
    ByteType(),
    ShortType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimestampType(),
    TimestampNTZType(),
    BinaryType(),
    DecimalType(5, 2),
    DecimalType(38, 10),
    DecimalType(10, 0),
]


def types() -> st.SearchStrategy[DataType]:
    """Types of fields."""

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        return st.one_of(
            inner.map(ArrayType),
            inner.map(lambda kind: MapType(StringType(), kind)),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda kinds: StructType([StructField(name, kind) for name, kind in zip(NAMES, kinds, strict=False)])
            ),
        )

    return st.recursive(st.sampled_from(_SCALARS), nested, max_leaves=4)


def _number() -> st.SearchStrategy[str]:
    return st.one_of(
        st.integers(-300, 300).map(str),
        st.integers(-(2**65), 2**65).map(str),
        st.sampled_from([2**7, 2**8, 2**15, 2**31, 2**63]).flatmap(
            lambda edge: st.sampled_from([str(edge), str(edge - 1), str(-edge), str(-edge - 1)])
        ),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.decimals(-1000, 1000, places=3).map(str),
        st.sampled_from(["-0", "0.0", "-0.0", "1e3", "1E-5", "12.50", "1e400", "0.005", "NaN", "-Infinity", "1e30"]),
    )


_TIMES = st.sampled_from(
    [
        "2020-01-02",
        "2020",
        "2020-2",
        "2020-1-2",
        " 2020-01-02 ",
        "2020-02-30",
        "2020-01-02T03:04:05",
        "2020-01-02 03:04:05.678",
        "2020-01-02T03:04:05.123456789Z",
        "2020-01-02T03:04",
        "2020-01-02T03:04:05+02:00",
        "2020-01-02T03:04:05-0230",
        "2020-01-02T03:04:05 UTC",
        "2020-01-02T03:04:05GMT+1",
        "2020-01-02T24:00:00",
        "2020-01-02T",
        "10000-01-01",
        "0001-01-01",
        "-0005-03-01",
        "17532",
        "123",
        "epoch",
        "1600000000",
    ]
)


def _text() -> st.SearchStrategy[str]:
    words = st.one_of(
        _WORDS,
        _TIMES,
        _number(),
        st.sampled_from(["", "NaN", "+INF", "-Infinity", "true", "YWJj", "YWI=", "YWI", "YW==", "1,234.5", "+5"]),
    )
    return st.tuples(words, st.booleans()).map(lambda drawn: json.dumps(drawn[0], ensure_ascii=drawn[1]))


def any_json() -> st.SearchStrategy[str]:
    """The text of any value."""
    leaves = st.one_of(st.sampled_from(["null", "true", "false"]), _number(), _text())

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        members = st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3, unique_by=lambda member: member[0])
        return st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
            members.map(lambda found: "{" + ",".join(f'"{name}" : {value}' for name, value in found) + "}"),
        )

    return st.recursive(leaves, nested, max_leaves=5)


def fitting_json(kind: DataType) -> st.SearchStrategy[str]:
    """The text of a value that is meant for a type, and now and then does not fit it."""
    parts: Any = kind
    match kind.typeName():
        case "array":
            right = st.lists(fitting_json(parts.elementType), max_size=3).map(lambda items: f"[{','.join(items)}]")
        case "map":
            members = st.lists(
                st.tuples(_text(), fitting_json(parts.valueType)), max_size=3, unique_by=lambda member: member[0]
            )
            right = members.map(lambda found: "{" + ",".join(f"{key}:{value}" for key, value in found) + "}")
        case "struct":
            right = objects(parts)
        case "string":
            right = _text()
        case "boolean":
            right = st.sampled_from(["true", "false"])
        case "date" | "timestamp" | "timestamp_ntz":
            right = _TIMES.map(json.dumps)
        case "binary":
            right = st.sampled_from(['"YWJj"', '"YWI="', '""', '"YWJj\\nYWJj"'])
        case _:
            right = st.one_of(_number(), st.integers(-100, 100).map(str))
    return st.one_of(right, right, right, right, st.just("null"), any_json())


def objects(kind: StructType) -> st.SearchStrategy[str]:
    """The text of an object with some of the fields of a struct, and others."""
    known = [
        st.one_of(st.none(), fitting_json(field.dataType).map(lambda text, name=field.name: f'"{name}":{text}'))
        for field in kind.fields
    ]
    other = st.one_of(st.none(), any_json().map(lambda text: f'"other":{text}'))
    return (
        st.tuples(*known, other)
        .flatmap(lambda members: st.permutations([member for member in members if member is not None]))
        .map(lambda members: "{" + ", ".join(members) + "}")
    )


def damaged(record: bytes) -> st.SearchStrategy[bytes]:
    """A record with one thing wrong: cut off, a byte changed, put in or left out."""
    places = st.integers(0, max(0, len(record) - 1))
    bytes_of_json = st.sampled_from([bytes([byte]) for byte in b"{}[]\",:\\' \n-+.0189eEntfaN\x00\x80\xff"])
    return st.one_of(
        places.map(lambda at: record[:at]),
        places.map(lambda at: record[:at] + record[at + 1 :]),
        st.tuples(places, bytes_of_json).map(lambda drawn: record[: drawn[0]] + drawn[1] + record[drawn[0] :]),
        st.tuples(places, bytes_of_json).map(lambda drawn: record[: drawn[0]] + drawn[1] + record[drawn[0] + 1 :]),
        st.just(record.replace(b'"', b"'")),
        st.just(record + b" x"),
        st.just(b" \n"),
        st.just(b"null"),
        st.just(b"[" + record + b"]"),
    )
