"""A writer's schema resolved to a reader's, compared with fastavro over schemas that hypothesis draws and changes."""

from __future__ import annotations

import io
import json
import struct
from contextlib import closing
from itertools import count
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructField, StructType

from pylog_spark.testing import LocalBroker
from pylog_spark.typed import avro
from pylog_spark.typed.formats import CORRUPT
from tests.harness import runs
from tests.spark.support import Topic
from tests.typed import avro_support, support

_SCALARS = ("boolean", "int", "long", "float", "double", "string", "bytes")
_WIDER = {"int": ("int", "long", "float", "double"), "long": ("long", "float", "double"), "float": ("float", "double")}


class Change:
    """Draws a writer's type, and what a reader makes of it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = count()

    def one_of(self, *choices: Any) -> Any:
        """One of them."""
        return self._draw(st.sampled_from(choices))

    def record(self, depth: int) -> tuple[Any, Any]:
        """A record."""
        name, written, read = f"R{next(self._numbers)}", [], []
        for _ in range(self._draw(st.integers(1, 4))):
            field, (theirs, ours) = f"f{next(self._numbers)}", self.kind(depth)
            written.append({"name": field, "type": theirs})
            match self.one_of("same", "same", "same", "renamed", "gone"):
                case "same":
                    read.append({"name": field, "type": ours})
                case "renamed":
                    read.append({"name": f"new_{field}", "aliases": [field], "type": ours})
        for _ in range(self._draw(st.integers(0, 2))):
            kind, default = self.one_of(
                ("int", -7),
                ("string", "é"),
                (["null", "long"], None),
                ({"type": "array", "items": "long"}, [1, 2]),
                ({"type": "map", "values": "double"}, {"a": 0.5}),
                ("bytes", "\u00ff"),
            )
            read.append({"name": f"f{next(self._numbers)}", "type": kind, "default": default})
        if not read:
            read.append({"name": "f", "type": "boolean", "default": True})
        read = self._draw(st.permutations(read))
        return (
            {"type": "record", "name": name, "fields": written},
            {"type": "record", "name": name, "fields": list(read)},
        )

    def kind(self, depth: int) -> tuple[Any, Any]:
        """Any type."""
        match self.one_of("scalar", "scalar", "enum", "fixed", *(("array", "map", "record", "union") if depth else ())):
            case "array":
                theirs, ours = self.kind(depth - 1)
                return {"type": "array", "items": theirs}, {"type": "array", "items": ours}
            case "map":
                theirs, ours = self.kind(depth - 1)
                return {"type": "map", "values": theirs}, {"type": "map", "values": ours}
            case "record":
                return self.record(depth - 1)
            case "union":
                theirs, ours = self.kind(0)
                return self.one_of(
                    (["null", theirs], ["null", ours]), (["null", theirs], [ours, "null"]), (theirs, ["null", ours]),
                    (["null", theirs], ours), ([theirs], ours),
                )  # fmt: skip
            case "enum":
                name = f"E{next(self._numbers)}"
                fewer = self.one_of(
                    {"symbols": ["z", "x"]}, {"symbols": ["w", "y"], "default": "w"}, {"symbols": ["x", "y", "z"]}
                )
                return (
                    {"type": "enum", "name": name, "symbols": ["x", "y", "z"]},
                    {"type": "enum", "name": name, **fewer},
                )
            case "fixed":
                made = {"type": "fixed", "name": f"F{next(self._numbers)}", "size": 2}
                return made, made
        theirs = self.one_of(*_SCALARS)
        return theirs, self.one_of(*_WIDER.get(theirs, (theirs,)))


@st.composite
def topics(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """Both schemas, and values for the writer's."""
    written, read = Change(draw).record(depth=2)
    return written, read, draw(st.lists(avro_support.values(written), min_size=1, max_size=6))


def by_fastavro(written: Any, read: Any, datum: bytes) -> dict[str, Any] | None:
    """What fastavro reads; None when it cannot."""
    theirs, ours = (fastavro.parse_schema(json.loads(json.dumps(each))) for each in (written, read))
    try:
        found: Any = fastavro.schemaless_reader(io.BytesIO(datum), theirs, ours)
    except (fastavro.read.SchemaResolutionError, ValueError):
        return None
    return dict(found)


def shown(kind: Any, value: Any) -> Any:
    """A value in the form of `avro_support.plain`."""
    if value is None:
        return None
    if isinstance(kind, list):
        (kind,) = (each for each in kind if each != "null")
    name = kind if isinstance(kind, str) else kind["type"]
    if name == "record":
        return {each["name"]: shown(each["type"], value[each["name"]]) for each in kind["fields"]}
    if name == "array":
        return [shown(kind["items"], each) for each in value]
    if name == "map":
        return sorted((key, repr(shown(kind["values"], each))) for key, each in value.items())
    if name == "float":
        return struct.unpack("<f", struct.pack("<f", value))[0]
    if name == "double":
        return float(value)
    if name == "bytes" and isinstance(value, str):
        # A default, which fastavro gives as the schema has it.
        value = value.encode("latin-1")
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_records_are_read_as_by_fastavro_with_both_schemas(
    registry_broker: LocalBroker, registered: Topic, new_topic: str
) -> None:
    url = registry_broker.schema_registry_url
    subjects = count()
    client = SchemaRegistryClient({"url": url})
    client.set_compatibility(level="NONE")

    @support.examples(40, 1500)
    @given(topics())
    def compared(drawn: tuple[Any, Any, list[Any]]) -> None:
        written, read, values = drawn
        number = client.register_schema(f"{new_topic}-{next(subjects)}", Schema(json.dumps(written), "AVRO"))
        datums = [avro_support.datum(written, value) for value in values]
        (start, _) = registered.offsets()
        registered.put([struct.pack(">bI", 0, number) + datum for datum in datums])
        columns = support.as_pysparks(avro.spark_type(avro.read(json.dumps(read))))
        ours = support.read(
            registered,
            StructType([*columns.fields, StructField(CORRUPT, StringType())]),
            valueFormat="avro",
            valueSchema=json.dumps(read),
            startingOffsets=f'{{"{registered.name}":{{"0":{start},"1":-2}}}}',
            **{"schema.registry.url": url},
        )
        expected = [by_fastavro(written, read, datum) for datum in datums]
        assert [text is None for text in ours[CORRUPT].to_pylist()] == [value is not None for value in expected], (
            written,
            read,
            values,
        )
        for field in read["fields"]:
            name = field["name"]
            wanted = [repr(None if row is None else shown(field["type"], row[name])) for row in expected]
            assert avro_support.plain(ours[name]) == wanted, (written, read, values)

    with closing(client):
        compared()
