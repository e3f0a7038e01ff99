"""Spark's types without Spark: read from JSON, DDL and Arrow they are those that Spark has."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructField, StructType

from pylog_spark.errors import PylogError
from pylog_spark.typed import avro, types
from pylog_spark.typed.arrow import arrow_field
from tests.typed import support

DDLS = [
    "id bigint, name string",
    "`a b` INT NOT NULL COMMENT 'it''s', `c``d`: array<map<string, struct<x: decimal(12, 3), `y`: date>>>",
    "a byte, b tinyint, c short, d smallint, e integer, f long, g real, h float, i double, j boolean, k binary",
    "at timestamp, naive timestamp_ntz, local timestamp_ltz, day date, nothing void, d dec, n numeric(7), i interval day to second",
    "empty struct<>, deep struct<a struct<b:array<array<int>>> NOT NULL COMMENT 'x'>, 7up int, type string, not boolean",
]


def test_ddl_means_what_it_means_to_spark(spark: Any) -> None:
    for text in DDLS:
        theirs = StructType.fromDDL(text)
        ours = support.as_pysparks(types.from_ddl(text))
        assert without_comments(ours) == without_comments(theirs), text


def without_comments(schema: StructType) -> StructType:
    """The schema without its metadata."""

    def bare(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: {} if name == "metadata" else bare(part) for name, part in found.items()}
        return [bare(part) for part in found] if isinstance(found, list) else found

    return StructType.fromJson(bare(json.loads(schema.json())))


def test_json_ddl_and_arrow_give_back_every_type_of_a_typed_read() -> None:
    @support.examples(100, 2000)
    @given(st.lists(support.types(), min_size=1, max_size=4))
    def same(kinds: list[Any]) -> None:
        schema = StructType([StructField(f"c`{number}", kind) for number, kind in enumerate(kinds)])
        ours = types.from_json(schema.json())
        assert support.as_pysparks(ours) == schema
        assert ours.simpleString() == schema.simpleString()
        assert types.of_arrow([arrow_field(field) for field in schema.fields]) == ours
        text = ", ".join(f"{avro.quoted(field.name)} {avro.ddl(field.dataType)}" for field in ours.fields)
        assert types.from_ddl(text) == ours

    same()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id bigint name string", "cannot be read at 'name string': a comma or the end is expected"),
        ("id", "cannot be read at its end: a type is expected"),
        ("a-b int", "cannot be read at '-b int': a type is expected"),
        ("a array<int", "cannot be read at its end: '>' is expected"),
        ("", "cannot be read at its end: a name"),
        ("a " + "array<" * 300 + "int" + ">" * 300, "may be nested 200 deep"),
    ],
)
def test_what_is_no_ddl_is_refused_where_it_is_none(text: str, said: str) -> None:
    with pytest.raises(PylogError, match=said):
        types.from_ddl(text)


@pytest.mark.parametrize(
    "text",
    ["{", '"string"', '{"type":"struct"}', '{"type":"array","elementType":"int","containsNull":true}', "[]"],
)
def test_what_is_no_schema_of_sparks_is_refused(text: str) -> None:
    with pytest.raises(PylogError, match="PYLOG_INVALID_SCHEMA"):
        types.from_json(text)


def test_arrow_types_that_no_typed_read_gives_are_refused_by_name() -> None:
    for kind in (
        pa.uint8(),
        pa.timestamp("ns"),
        pa.timestamp("us", "Europe/Berlin"),
        pa.decimal256(50, 2),
        pa.time64("us"),
    ):
        with pytest.raises(PylogError, match="which typed columns cannot have") as refused:
            types.of_arrow(pa.schema([("a", kind)]))
        assert f"column a has the type {kind}" in str(refused.value)
