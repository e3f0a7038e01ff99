"""Messages of Protobuf that hypothesis draws, and what the rules of `from_protobuf` make of what Google's parser reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

F: Any = descriptor_pb2.FieldDescriptorProto
PACKAGE, ROOT = "drawn", "drawn.Root"
SYMBOLS = {"ZERO": 0, "ONE": 1, "MINUS": -1, "BIG": 2**31 - 1}
#: Google's own messages that one value of a column is made of, each with its field that is drawn.
WRAPPED = {"Int64Value": (LongType(), F.TYPE_INT64), "StringValue": (StringType(), F.TYPE_STRING)}

_INT32 = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
_INT64 = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
_UINT32 = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1))
_UINT64 = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_FLOAT = st.floats(width=32, allow_nan=False)
_DOUBLE = st.floats(allow_nan=False)

#: Protobuf's type -> types of columns that show it, and its values.
SCALARS: dict[int, tuple[list[DataType], st.SearchStrategy[Any]]] = {
    F.TYPE_DOUBLE: ([DoubleType()], _DOUBLE),
    F.TYPE_FLOAT: ([FloatType()], _FLOAT),
    F.TYPE_INT64: ([LongType()], _INT64),
    F.TYPE_UINT64: ([LongType(), DecimalType(20, 0)], _UINT64),
    F.TYPE_INT32: ([IntegerType()], _INT32),
    F.TYPE_FIXED64: ([LongType(), DecimalType(20, 0)], _UINT64),
    F.TYPE_FIXED32: ([IntegerType(), LongType()], _UINT32),
    F.TYPE_BOOL: ([BooleanType()], st.booleans()),
    F.TYPE_STRING: ([StringType()], _TEXT),
    F.TYPE_BYTES: ([BinaryType()], st.binary(max_size=6)),
    F.TYPE_UINT32: ([IntegerType(), LongType()], _UINT32),
    F.TYPE_SFIXED32: ([IntegerType()], _INT32),
    F.TYPE_SFIXED64: ([LongType()], _INT64),
    F.TYPE_SINT32: ([IntegerType()], _INT32),
    F.TYPE_SINT64: ([LongType()], _INT64),
    F.TYPE_ENUM: ([StringType(), IntegerType()], st.sampled_from(sorted(SYMBOLS.values()))),
}
_KEYS = [kind for kind in SCALARS if kind not in (F.TYPE_DOUBLE, F.TYPE_FLOAT, F.TYPE_BYTES, F.TYPE_ENUM)]


@dataclass
class Drawn:
    """A message, the columns that show it, and messages of it.

    Attributes
    ----------
    descriptors : bytes
        A ``FileDescriptorSet``.
    columns : StructType
        A column for each field.
    kind : type
        Google's class of the message.
    records : list of bytes
        Messages.
    """

    descriptors: bytes
    columns: StructType
    kind: Any
    records: list[bytes]


@st.composite
def messages(draw: st.DrawFn, records: int) -> Drawn:
    """A message with up to six fields, and records of it."""
    syntax = draw(st.sampled_from(["proto2", "proto3", "proto3"]))
    file = descriptor_pb2.FileDescriptorProto(name="drawn.proto", package=PACKAGE, syntax=syntax)
    known = [timestamp_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR]
    file.dependency.extend(each.name for each in known)
    symbols = file.enum_type.add(name="Symbol")
    for name, number in SYMBOLS.items():
        symbols.value.add(name=name, number=number)
    columns = _fill(draw, file.message_type.add(name="Root"), f".{ROOT}", syntax, depth=0)
    found = descriptor_pb2.FileDescriptorSet()
    for each in known:
        each.CopyToProto(found.file.add())
    found.file.append(file)
    pool = descriptor_pool.DescriptorPool()
    for each in found.file:
        pool.Add(each)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(ROOT))
    written = [message(draw, kind.DESCRIPTOR, kind()).SerializeToString() for _ in range(records)]
    return Drawn(found.SerializeToString(), columns, kind, written)


def _fill(draw: st.DrawFn, message: Any, name: str, syntax: str, depth: int) -> StructType:
    fields = []
    numbers = draw(
        st.lists(st.sampled_from([1, 2, 3, 4, 15, 16, 100, 1023, 1024, 5000]), min_size=1, max_size=6, unique=True)
    )
    for place, number in enumerate(numbers):
        field = message.field.add(name=f"f{place}", number=number, label=F.LABEL_OPTIONAL)
        kind = _field(draw, message, field, name, syntax, depth)
        fields.append(StructField(field.name, kind))
    return StructType(fields)


def _field(draw: st.DrawFn, message: Any, field: Any, name: str, syntax: str, depth: int) -> DataType:
    how = draw(st.sampled_from(["one", "one", "optional", "oneof", "list", "map"]))
    if how == "map":
        return _map(draw, message, field, name, syntax, depth)
    kind = _item(draw, message, field, name, syntax, depth)
    if how == "list":
        field.label = F.LABEL_REPEATED
        if field.type not in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE) and draw(st.booleans()):
            field.options.packed = draw(st.booleans())
        return ArrayType(kind)
    if how == "oneof":
        if not any(each.name == "either" for each in message.oneof_decl):
            # Those of optional fields stand behind it.
            if message.oneof_decl:
                return kind
            message.oneof_decl.add(name="either")
        field.oneof_index = 0
    elif how == "optional" and syntax == "proto3" and field.type != F.TYPE_MESSAGE:
        field.proto3_optional = True
        message.oneof_decl.add(name=f"_{field.name}")
        field.oneof_index = len(message.oneof_decl) - 1
    elif how == "optional" and syntax == "proto2" and field.type in (F.TYPE_INT32, F.TYPE_SINT64, F.TYPE_STRING):
        field.default_value = "-7" if field.type != F.TYPE_STRING else "said"
    return kind


def _item(draw: st.DrawFn, message: Any, field: Any, name: str, syntax: str, depth: int) -> DataType:
    word = draw(st.sampled_from(["scalar"] * 4 + ["struct", "time", "span", "wrapped"]))
    if word == "scalar" or (word == "struct" and depth > 1):
        field.type = draw(st.sampled_from(sorted(SCALARS)))
        if field.type == F.TYPE_ENUM:
            field.type_name = f".{PACKAGE}.Symbol"
        return draw(st.sampled_from(SCALARS[field.type][0]))
    field.type = F.TYPE_MESSAGE
    if word == "struct":
        inner = f"M{len(message.nested_type)}"
        field.type_name = f"{name}.{inner}"
        return _fill(draw, message.nested_type.add(name=inner), field.type_name, syntax, depth + 1)
    if word == "wrapped":
        wrapper = draw(st.sampled_from(sorted(WRAPPED)))
        field.type_name = f".google.protobuf.{wrapper}"
        return WRAPPED[wrapper][0]
    field.type_name = f".google.protobuf.{'Timestamp' if word == 'time' else 'Duration'}"
    return TimestampType() if word == "time" else DayTimeIntervalType()


def _map(draw: st.DrawFn, message: Any, field: Any, name: str, syntax: str, depth: int) -> DataType:
    entry = message.nested_type.add(name=f"F{field.name[1:]}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=draw(st.sampled_from(_KEYS)))
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
    of_value = _item(draw, message, value, name, syntax, depth)
    field.label, field.type, field.type_name = F.LABEL_REPEATED, F.TYPE_MESSAGE, f"{name}.{entry.name}"
    return MapType(SCALARS[key.type][0][0], of_value)


def message(draw: st.DrawFn, descriptor: Any, made: Any) -> Any:
    """Fill a message."""
    if descriptor.full_name.startswith("google.protobuf."):
        _google(draw, descriptor.name, made)
        return made
    for field in descriptor.fields:
        if draw(st.integers(0, 3)) == 0:
            continue
        holder = getattr(made, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
            for _ in range(draw(st.integers(0, 2))):
                at = draw(SCALARS[key.type][1])
                if value.message_type is not None:
                    message(draw, value.message_type, holder[at])
                else:
                    holder[at] = draw(SCALARS[value.type][1])
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 3))):
                if field.message_type is not None:
                    message(draw, field.message_type, holder.add())
                else:
                    holder.append(draw(SCALARS[field.type][1]))
        elif field.message_type is None:
            setattr(made, field.name, draw(SCALARS[field.type][1]))
        else:
            holder.SetInParent()
            message(draw, field.message_type, holder)
    return made


def _google(draw: st.DrawFn, name: str, made: Any) -> None:
    if name == "Timestamp":
        made.seconds, made.nanos = (
            draw(st.integers(-60_000_000_000, 200_000_000_000)),
            draw(st.integers(0, 999_999_999)),
        )
    elif name == "Duration":
        made.seconds, made.nanos = draw(st.integers(-(10**9), 10**9)), draw(st.integers(-999_999_999, 999_999_999))
    else:
        made.value = draw(SCALARS[WRAPPED[name][1]][1])


def damaged(record: bytes) -> st.SearchStrategy[bytes]:
    """A record with one thing wrong, or behind which another begins."""
    places = st.integers(0, max(0, len(record) - 1))
    byte = st.integers(0, 255).map(lambda number: bytes([number]))
    return st.one_of(
        places.map(lambda at: record[:at]),
        places.map(lambda at: record[:at] + record[at + 1 :]),
        st.tuples(places, byte).map(lambda drawn: record[: drawn[0]] + drawn[1] + record[drawn[0] :]),
        st.tuples(places, byte).map(lambda drawn: record[: drawn[0]] + drawn[1] + record[drawn[0] + 1 :]),
        st.just(record + record),
        st.binary(max_size=12),
    )


def is_damaged(kind: Any, parsed: Any) -> bool:
    """Whether Spark refuses what Google's parser does not: a field of the message among the unknown ones."""
    known = {field.number for field in kind.DESCRIPTOR.fields}
    return any(field.field_number in known for field in UnknownFieldSet(parsed))


class UnreadableError(Exception):
    """Google's library for Python cannot say what the message has: the value of a key that is no UTF-8; an entry of a map that has an
    unknown field in it, which it puts among the unknown fields of the message."""


def columns_of(descriptor: Any, parsed: Any, columns: StructType) -> tuple[Any, ...]:
    """What the columns of a message are. Raises `UnreadableError`."""
    check_entries(descriptor, parsed)
    return tuple(_column(descriptor.fields_by_name[each.name], parsed, each.dataType) for each in columns.fields)


def check_entries(descriptor: Any, parsed: Any) -> None:
    """Raises `UnreadableError` for an entry of a map that has an unknown field in it."""
    kinds = ((field.number, field.message_type) for field in descriptor.fields)
    maps = {number for number, kind in kinds if kind is not None and kind.GetOptions().map_entry}
    if any(field.field_number in maps for field in UnknownFieldSet(parsed)):
        raise UnreadableError


def _column(field: Any, parsed: Any, kind: Any) -> Any:
    value = getattr(parsed, field.name)
    if isinstance(kind, MapType):
        entry = field.message_type.fields_by_name
        if any(isinstance(at, bytes) for at in value):
            raise UnreadableError
        found = [
            (repr(_value(entry["key"], at, kind.keyType)), _value(entry["value"], value[at], kind.valueType))
            for at in value
        ]
        return sorted(found, key=lambda entry: entry[0])
    if field.is_repeated:
        return [_value(field, item, kind.elementType) for item in value]
    if field.has_presence:
        there = parsed.HasField(field.name) or field.has_default_value
    else:
        there = value != field.default_value or (isinstance(value, float) and math.copysign(1, value) < 0)
    return _value(field, value, kind) if there else None


def _value(field: Any, value: Any, kind: Any) -> Any:
    if field.message_type is not None:
        name = field.message_type.name
        if isinstance(kind, StructType):
            return columns_of(field.message_type, value, kind)
        if name in ("Timestamp", "Duration"):
            return micros(value.seconds, value.nanos)
        return _value(field.message_type.fields_by_name["value"], value.value, kind)
    if field.enum_type is not None:
        if isinstance(kind, IntegerType):
            return value
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_{value}"
    if isinstance(kind, StringType) and isinstance(value, bytes):
        # A text of proto2 that is no UTF-8: Java, and so Spark, repairs it.
        return value.decode(errors="replace")
    if isinstance(kind, IntegerType):
        return (value + 2**31) % 2**32 - 2**31
    if isinstance(kind, LongType):
        return _signed(value)
    return repr(value) if isinstance(value, float) else value


def micros(seconds: int, nanos: int) -> int:
    """A time as Spark adds it up: milliseconds that do not fit into a long lose bits, microseconds are an `OverflowError`."""
    found = _signed(seconds * 1000) * 1000
    if not -(2**63) <= found < 2**63:
        raise OverflowError(found)
    return _signed(found + int(nanos / 1000))


def _signed(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def shown(value: pa.Scalar, kind: Any) -> Any:
    """A value of a column in the form of `columns_of`."""
    if not value.is_valid:
        return None
    if isinstance(kind, MapType):
        # Google's parser keeps the last one of a key that comes twice, Spark and we all of them.
        pairs = ((entry["key"], entry["value"]) for entry in value.values)
        last = {repr(_plain(at, kind.keyType)): shown(item, kind.valueType) for at, item in pairs}
        return sorted(last.items(), key=lambda entry: entry[0])
    if isinstance(kind, ArrayType):
        return [shown(item, kind.elementType) for item in value.values]
    if isinstance(kind, StructType):
        return tuple(shown(value[field.name], field.dataType) for field in kind.fields)
    return _plain(value, kind)


def _plain(value: pa.Scalar, kind: Any) -> Any:
    if isinstance(kind, (TimestampType, DayTimeIntervalType)):
        return value.value
    found = value.as_py()
    if isinstance(kind, DecimalType):
        return int(found)
    return repr(found) if isinstance(found, float) else found
