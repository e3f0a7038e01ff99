"""What the registry calls compatible can be read: judged by the libraries that read, over generated schemas and values.

The registry must not say so of two schemas where fastavro, jsonschema or Protobuf's own runtime then refuses or loses what was written.
"""

import io
import json
from typing import Any

import fastavro
import jsonschema
import pytest
from fastavro.utils import generate_one
from google.protobuf import descriptor_pool, message_factory
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from pylog_spark.registry.schemas import SchemaError
from pylog_spark.registry.schemas.avro import parse
from pylog_spark.registry.schemas.json_schema import parse_json
from pylog_spark.registry.schemas.protobuf import ProtobufSchema, parse_protobuf
from tests.harness.runs import rounds

EXAMPLES = rounds("PYLOG_REGISTRY_SCHEMAS", 150, 3_000)

# -- Avro

PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "string"])


def avro_types(names: tuple[str, ...] = ("A", "B")) -> st.SearchStrategy[Any]:
    """Types without circles; named ones have names of their own."""
    leaves = PRIMITIVES
    if names:
        name, *others = names
        inner = st.deferred(lambda: avro_types(tuple(others)))
        leaves = st.one_of(
            leaves,
            st.builds(lambda fields, name=name: {"type": "record", "name": name, "fields": fields}, avro_fields(inner)),
            st.builds(
                lambda symbols, default, name=name: (
                    {"type": "enum", "name": name, "symbols": symbols} | ({"default": symbols[0]} if default else {})
                ),
                st.lists(st.sampled_from("PQR"), min_size=1, unique=True),
                st.booleans(),
            ),
            st.builds(lambda size, name=name: {"type": "fixed", "name": name, "size": size}, st.integers(1, 2)),
            st.builds(lambda items: {"type": "array", "items": items}, inner),
            st.builds(lambda values: {"type": "map", "values": values}, inner),
        )
    return leaves


def avro_fields(types: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Fields of a record; some may be null, by default or not."""

    def field(name: str, kind: Any, form: int) -> dict[str, Any]:
        if form == 0 or kind == "null":
            return {"name": name, "type": kind}
        return {"name": name, "type": ["null", kind], **({"default": None} if form == 1 else {})}

    return st.lists(
        st.builds(field, st.sampled_from("abc"), types, st.integers(0, 2)),
        max_size=3,
        unique_by=lambda each: each["name"],
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(avro_types(), avro_types())
def test_avro_schemas_that_are_called_compatible_are_read_by_fastavro(writer: Any, reader: Any) -> None:
    try:
        reasons = parse(json.dumps(reader)).reads(parse(json.dumps(writer)))
    except SchemaError:
        # The same name twice, in both of two fields.
        assume(False)
    event("compatible" if not reasons else "not compatible")
    if reasons:
        return
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(writer, {}), generate_one(writer))
    buffer.seek(0)
    fastavro.schemaless_reader(buffer, fastavro.parse_schema(writer, {}), fastavro.parse_schema(reader, {}))
    assert not buffer.read()


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ('"int"', '"long"'),
        ('"long"', '"double"'),
        ('"string"', '["null", "string"]'),
        ('["null", "int"]', '["null", "long"]'),
        (
            '{"type": "enum", "name": "E", "symbols": ["A", "B"]}',
            '{"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}',
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
            '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "long", "aliases": ["a"]}]}',
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}',
            '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}, {"name": "n", "type": "int", "default": 1}]}',
        ),
    ],
)
def test_avro_schemas_that_grow_by_the_specification_are_compatible(writer: str, reader: str) -> None:
    assert parse(reader).reads(parse(writer)) == []
    assert parse(writer).reads(parse(writer)) == []


# -- JSON Schema

SMALL = st.integers(0, 3)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 5),
        st.sampled_from([0.5, 2.5]),
        st.sampled_from(["", "a", "ab", "abc"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["p", "q", "x1"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def keywords(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these keywords."""
    return st.fixed_dictionaries({}, optional=known)


def json_schemas() -> st.SearchStrategy[Any]:
    """Schemas without `default`, which readers put in, and `oneOf`, of which a choice more may make a value ambiguous."""
    leaves = st.one_of(
        st.booleans(),
        st.builds(
            lambda words: {"type": "string", **words},
            keywords(minLength=SMALL, maxLength=SMALL, pattern=st.sampled_from(["a", "b$"])),
        ),
        st.builds(
            lambda kind, words: {"type": kind, **words},
            st.sampled_from(["integer", "number"]),
            keywords(
                minimum=SMALL,
                maximum=SMALL,
                exclusiveMinimum=SMALL,
                exclusiveMaximum=SMALL,
                multipleOf=st.sampled_from([1, 2, 0.5]),
            ),
        ),
        st.builds(
            lambda kinds: {"type": kinds},
            st.lists(st.sampled_from(["null", "boolean", "string", "number"]), min_size=1, unique=True),
        ),
        st.builds(
            lambda values: {"enum": values}, st.lists(st.sampled_from([None, 1, "a", "ab"]), min_size=1, unique_by=str)
        ),
        st.builds(lambda value: {"const": value}, st.sampled_from([None, 1, "a"])),
        keywords(minLength=SMALL, maximum=SMALL, minItems=SMALL),
    )

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        named = st.dictionaries(st.sampled_from(["p", "q", "x1"]), inner, max_size=2)
        objects = keywords(
            type=st.just("object"),
            properties=named,
            required=st.lists(st.sampled_from("pq"), unique=True, max_size=2),
            additionalProperties=inner,
            patternProperties=st.dictionaries(st.just("^x"), inner, max_size=1),
            propertyNames=st.just({"maxLength": 1}),
            maxProperties=SMALL,
            dependentRequired=st.just({"p": ["q"]}),
        )
        arrays = keywords(
            type=st.just("array"),
            prefixItems=st.lists(inner, min_size=1, max_size=2),
            items=inner,
            contains=inner,
            minContains=SMALL,
            maxContains=SMALL,
            maxItems=SMALL,
            uniqueItems=st.booleans(),
        )
        several = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            objects,
            arrays,
            st.builds(lambda kind, parts: {kind: parts}, st.sampled_from(["allOf", "anyOf"]), several),
            st.builds(lambda not_: {"not": not_}, inner),
            st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        )

    return st.recursive(leaves, deeper, max_leaves=4)


@st.composite
def json_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and another one, most often the same with one keyword changed or taken away: others are hardly ever compatible."""
    old = draw(json_schemas())
    if not isinstance(old, dict) or not old or draw(st.integers(0, 3)) == 0:
        return old, draw(json_schemas())
    new = dict(old)
    name = draw(st.sampled_from(sorted(old)))
    if draw(st.booleans()):
        del new[name]
    else:
        other = draw(json_schemas().filter(lambda each: isinstance(each, dict) and bool(each)))
        new |= other
    return old, new


@settings(max_examples=EXAMPLES, deadline=None)
@given(json_pairs(), st.lists(VALUES, min_size=8, max_size=8))
def test_values_of_a_json_schema_are_values_of_one_that_is_called_compatible(
    pair: tuple[Any, Any], values: list[Any]
) -> None:
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    old, new = (each if isinstance(each, bool) else {**dialect, **each} for each in pair)
    # A conjunction with the dialect alone is not nested.
    reasons = parse_json(json.dumps(new)).reads(parse_json(json.dumps(old)))
    event("compatible" if not reasons else "not compatible")
    if not reasons:
        before, now = (jsonschema.Draft202012Validator(each) for each in (old, new))
        for value in values:
            assert now.is_valid(value) or not before.is_valid(value), (old, new, value)


@settings(max_examples=EXAMPLES, deadline=None)
@given(json_schemas())
def test_a_json_schema_is_compatible_with_itself_and_its_normal_form(schema: Any) -> None:
    read = parse_json(json.dumps(schema))
    again = parse_json(read.text(True))
    assert read.reads(again) == again.reads(read) == []
    assert again.text(True) == read.text(True)


# -- Protobuf

SCALARS = (
    "int32",
    "sint64",
    "uint32",
    "bool",
    "string",
    "bytes",
    "fixed32",
    "sfixed64",
    "float",
    "double",
    "Color",
    "Part",
)


@st.composite
def proto_schemas(draw: st.DrawFn) -> str:
    """A message of some fields, in and out of a `oneof`, with an enum and a message beside it."""
    kinds = draw(st.dictionaries(st.integers(1, 4), st.sampled_from(SCALARS), max_size=4))
    lines, inside = [], []
    for number, kind in kinds.items():
        form = draw(st.sampled_from(["", "", "repeated ", "optional ", "oneof", "map"]))
        name = f"{draw(st.sampled_from('fg'))}{number}"
        if form == "oneof":
            inside.append(f"{kind} {name} = {number};")
        elif form == "map":
            lines.append(f"map<string, {kind}> {name} = {number};")
        else:
            lines.append(f"{form}{kind} {name} = {number};")
    if inside:
        lines.append(f"oneof choice {{ {' '.join(inside)} }}")
    return (
        f'syntax = "proto3"; package p; message Record {{ {" ".join(lines)} }} enum Color {{ NONE = 0; RED = 3; }} '
        "message Part { int64 size = 1; }"
    )


def message_class(schema: ProtobufSchema) -> Any:
    """The class that Protobuf's runtime makes of it."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(schema.descriptor)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Record"))


def filled(message: Any, numbers: st.SearchStrategy[int], draw: Any) -> None:
    """Set every field to something that is not its default and that all scalars of an encoding can hold."""
    for field in message.DESCRIPTOR.fields:
        number = draw(numbers)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if value.message_type is not None:
                getattr(message, field.name)["k"].size = number
            else:
                getattr(message, field.name)["k"] = scalar_of(value, number)
        elif field.message_type is not None:
            part = getattr(message, field.name)
            (part.add() if field.is_repeated else part).size = number
        elif field.is_repeated:
            getattr(message, field.name).append(scalar_of(field, number))
        else:
            setattr(message, field.name, scalar_of(field, number))


def scalar_of(field: Any, number: int) -> Any:
    """A value of this field."""
    if field.cpp_type == field.CPPTYPE_STRING:
        return "x" * number if field.type == field.TYPE_STRING else b"x" * number
    return (
        bool(number) if field.cpp_type == field.CPPTYPE_BOOL else float(number) if field.cpp_type in (5, 6) else number
    )


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(proto_schemas(), proto_schemas(), st.data())
def test_fields_of_protobuf_schemas_that_are_called_compatible_are_not_lost(
    old_text: str, new_text: str, data: Any
) -> None:
    old, new = parse_protobuf(old_text), parse_protobuf(new_text)
    reasons = new.reads(old)
    event("compatible" if not reasons else "not compatible")
    assert old.reads(old) == []
    if reasons:
        return
    written = message_class(old)()
    filled(written, st.integers(1, 3), data.draw)
    read = message_class(new)()
    read.ParseFromString(written.SerializeToString())
    known = {field.number for field in read.DESCRIPTOR.fields}
    for field, _ in written.ListFields():
        if field.number in known:
            assert field.number in {each.number for each, _ in read.ListFields()}, (old_text, new_text, written)


@settings(max_examples=EXAMPLES, deadline=None)
@given(proto_schemas())
def test_a_protobuf_schema_keeps_its_meaning_when_it_is_written_again_or_given_as_a_descriptor(text: str) -> None:
    read = parse_protobuf(text)
    again = parse_protobuf(read.text(True))
    assert again.file == read.file
    assert parse_protobuf(read.serialized()).text(False) == again.text(True) == read.text(True)


EVERYTHING = r"""
syntax = "proto2";
package a.b;
import public "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
option java_package = "com.example";
option optimize_for = LITE_RUNTIME;
option java_multiple_files = true;
extend google.protobuf.FieldOptions { optional string note = 50001; }
message Outer {
  option deprecated = true;
  required int32 a = 1 [default = -5, deprecated = true];
  optional string s = 2 [default = "a\"b\\c\n\303\274", json_name = "es"];
  optional bytes y = 3 [default = "\001\xff\"x"];
  optional Color c = 4 [default = RED];
  optional double d = 5 [default = inf];
  optional float f = 6 [default = 1.5e10];
  optional bool t = 7 [default = true];
  repeated int32 packed = 8 [packed = true, (note) = "x"];
  repeated group Item = 9 { required string name = 1; message Deep { optional Outer o = 1; } optional Deep deep = 2; }
  oneof pick { string one = 10; Inner two = 11; }
  map<string, Inner> m = 12;
  optional google.protobuf.Timestamp at = 13;
  message Inner { enum E { X = 0; Y = -1; } optional E e = 1; extensions 100 to 199; extend Inner { optional int32 in_ext = 150; } }
  extensions 1000 to 2000;
  reserved 20, 30 to 40, 3000 to max;
  reserved "old", "older";
}
enum Color { option allow_alias = true; RED = 1; ROT = 1 [deprecated = true]; BLUE = 2; reserved 5 to 7, -3; reserved "GREEN"; }
extend Outer { optional string zz = 1001; repeated group Grp = 1002 { optional int32 q = 1; } }
service S { option deprecated = true; rpc X (Outer) returns (stream Outer) { option idempotency_level = IDEMPOTENT; } rpc Y (stream .a.b.Outer.Inner) returns (Outer); }
"""


def test_everything_that_proto2_has_is_written_again_but_for_comments_and_custom_options() -> None:
    read = parse_protobuf(EVERYTHING)
    again = parse_protobuf(read.text(True))
    assert again.file == json.loads(json.dumps(read.file).replace(', "[a.b.note]": "x"', ""))
    assert again.text(True) == read.text(True)
    assert read.text(False).splitlines() == [line.rstrip() for line in EVERYTHING.strip().splitlines()]
    assert again.reads(read) == read.reads(again) == []
