"""Avro schemas and values that hypothesis draws, and columns as values that can be compared."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

#: Most items of a list for Spark's Avro; pylog's bound for items without bytes.
ITEMS_MAX = 65_536


def limit_java(spark: Any) -> None:
    """Let Spark's Avro refuse lengths for which it would run out of memory. Before it is used first."""
    for what in ("bytes", "string", "collectionItems"):
        spark._jvm.java.lang.System.setProperty(f"org.apache.avro.limits.{what}.maxLength", str(ITEMS_MAX))


def datum(schema: Any, value: object) -> bytes:
    """A value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    """The schema of a record."""
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a record."""
    return {"name": name, "type": kind, **more}


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


_SCALARS: list[Any] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    _logical("int", "date"),
    _logical("long", "timestamp-millis"),
    _logical("long", "timestamp-micros"),
    _logical("long", "local-timestamp-millis"),
    _logical("long", "local-timestamp-micros"),
    _logical("bytes", "decimal", precision=9, scale=2),
    _logical("bytes", "decimal", precision=38, scale=10),
    _logical("bytes", "decimal", precision=20, scale=0),
    _logical("string", "uuid"),
]


class Drawing:
    """Draws schemas; the names of its types are told apart by numbers."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._names = 0

    def record(self, depth: int) -> dict[str, Any]:
        """A record."""
        count = self._draw(st.integers(1, 4))
        return record(*(field(f"f{at}", self.kind(depth)) for at in range(count)), name=self._name())

    def kind(self, depth: int, in_union: bool = False) -> Any:
        """Any type."""
        choice = self._draw(st.integers(0, 13 if depth else 8))
        if choice == 6:
            return {"type": "fixed", "name": self._name(), "size": self._draw(st.integers(0, 5))}
        if choice == 7:
            return {
                "type": "fixed",
                "name": self._name(),
                "size": 6,
                "logicalType": "decimal",
                "precision": 12,
                "scale": 3,
            }
        if choice == 8:
            return {"type": "enum", "name": self._name(), "symbols": ["x", "y", "z"]}
        if choice == 9:
            return {"type": "array", "items": self.kind(depth - 1)}
        if choice == 10:
            return {"type": "map", "values": self.kind(depth - 1)}
        if choice == 11:
            return self.record(depth - 1)
        if choice >= 12 and not in_union:
            return self._union(depth - 1)
        return self._draw(st.sampled_from(_SCALARS))

    def _union(self, depth: int) -> Any:
        first = self.kind(depth, in_union=True)
        return self._draw(
            st.sampled_from(
                [
                    ["null", first],
                    [first, "null"],
                    [first],
                    ["int", "long"],
                    ["null", "float", "double"],
                    ["null", "int", "string"],
                    ["boolean", {"type": "array", "items": "long"}, "string"],
                    ["null", record(field("x", "int"), name=self._name()), "double"],
                ]
            )
        )

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"


_NUMBERS = {"int": 2**31, "long": 2**63}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values of a schema, as fastavro writes them."""
    if isinstance(schema, list):
        return st.one_of(*map(values, schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = None if isinstance(schema, str) else schema.get("logicalType")
    if kind in _NUMBERS:
        edge = _NUMBERS[kind] // (1000 if logical and "millis" in logical else 1)
        return st.one_of(st.integers(-300, 300), st.integers(-edge, edge - 1))
    if kind == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if kind == "bytes":
        return st.binary(min_size=1 if logical else 0, max_size=17 if logical else 5)
    if kind == "record":
        return st.fixed_dictionaries({each["name"]: values(each["type"]) for each in schema["fields"]})
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "float": st.floats(width=32),
        "double": st.floats(),
        "string": st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=6),
    }
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(simple["string"], values(schema["values"]), max_size=3)
    return simple[kind]


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """A datum with one thing wrong: cut off, a byte changed, put in or left out, bytes behind it."""
    places = st.integers(0, max(0, len(whole) - 1))
    byte = st.integers(0, 255).map(lambda number: bytes([number]))
    return st.one_of(
        places.map(lambda at: whole[:at]),
        places.map(lambda at: whole[:at] + whole[at + 1 :]),
        st.tuples(places, byte).map(lambda drawn: whole[: drawn[0]] + drawn[1] + whole[drawn[0] :]),
        st.tuples(places, byte).map(lambda drawn: whole[: drawn[0]] + drawn[1] + whole[drawn[0] + 1 :]),
        st.just(whole + b"\x00x"),
    )


def plain(column: pa.ChunkedArray) -> list[str]:
    """The values of a column as texts: times as numbers, texts repaired, maps without their order and of a name the last value."""
    return [repr(_plain(scalar)) for scalar in column.combine_chunks().cast(_raw(column.type))]


def _raw(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.binary()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_map(kind):
        return pa.map_(pa.binary(), _raw(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_raw(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _raw(each.type)) for each in kind])
    return kind


def _plain(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_map(kind):
        pairs = scalar.values
        return sorted(
            (key, repr(value)) for key, value in {_plain(pair["key"]): _plain(pair["value"]) for pair in pairs}.items()
        )
    if pa.types.is_list(kind):
        return [_plain(each) for each in scalar.values]
    if pa.types.is_struct(kind):
        return {name: _plain(each) for name, each in scalar.items()}
    value = scalar.as_py()
    return value.decode(errors="replace") if isinstance(value, bytes) else value
