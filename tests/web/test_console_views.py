"""Keys and values as a broker's page shows them: JSON as it is written, Avro as its own library reads it."""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog_spark.client import Admin, Producer
from pylog_spark.registry.client import RegistryClient
from pylog_spark.registry.schemas.avro import parse
from pylog_spark.registry.schemas.avro_reading import PARTS_MAX, DatumError, read_datum
from pylog_spark.testing import LocalBroker
from pylog_spark.web.console.views import JSON_DEPTH_MAX, VIEW_BYTES_MAX, indented, view
from tests.web.asking import Page

TREE = {
    "type": "record",
    "name": "Node",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "bytes", "type": "bytes"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "fixed", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "list", "type": {"type": "array", "items": "long"}},
        {"name": "map", "type": {"type": "map", "values": "string"}},
        {"name": "next", "type": ["null", "Node"], "default": None},
    ],
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def node(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value of the schema `TREE`."""
    return st.fixed_dictionaries(
        {
            "flag": st.booleans(),
            "small": st.integers(-(2**31), 2**31 - 1),
            "large": st.integers(-(2**63), 2**63 - 1),
            "single": st.floats(width=32, allow_nan=False, allow_infinity=False),
            "double": st.floats(allow_nan=False, allow_infinity=False),
            "bytes": st.binary(max_size=10),
            "text": st.none() | st.text(max_size=10),
            "kind": st.sampled_from(["A", "B"]),
            "fixed": st.binary(min_size=4, max_size=4),
            "list": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
            "map": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
            "next": below,
        }
    )


NODES = st.recursive(st.none(), node, max_leaves=3).filter(lambda each: each is not None)


def written(schema: Any, value: Any) -> bytes:
    """The value as fastavro writes it."""
    into = io.BytesIO()
    fastavro.schemaless_writer(into, fastavro.parse_schema(schema), value)
    return into.getvalue()


def plain(value: Any) -> Any:
    """A value as it is shown."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


@settings(max_examples=50)
@given(NODES)
def test_an_avro_value_is_read_as_its_own_library_wrote_it(value: Any) -> None:
    assert read_datum(parse(json.dumps(TREE)).root, written(TREE, value)) == plain(value)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_avro_value_are_refused_and_nothing_else_happens(data: bytes) -> None:
    root = parse(json.dumps(TREE)).root
    with suppress(DatumError):
        json.dumps(read_datum(root, data))


def test_an_avro_value_that_claims_to_be_endless_is_refused() -> None:
    nulls = parse('{"type": "array", "items": "null"}').root
    assert read_datum(nulls, b"\x06\x00") == [None] * 3
    assert read_datum(nulls, b"\x05\x00\x00") == [None] * 3
    for endless in (b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", b"\x06" * (PARTS_MAX + 1)):
        with pytest.raises(DatumError):
            read_datum(nulls, endless)
    recursive = parse('{"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}').root
    with pytest.raises(DatumError):
        read_datum(recursive, b"\x02" * 5_000 + b"\x00")
    with pytest.raises(DatumError):
        read_datum(parse('"long"').root, b"\xff" * 20)
    with pytest.raises(DatumError):
        read_datum(parse('"string"').root, b"\x01")


@given(ANY_JSON, st.sampled_from([None, 1]), st.booleans())
def test_json_is_indented_and_stays_what_it_is(value: Any, indent: int | None, ascii_only: bool) -> None:
    shown = indented(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert shown is not None
    if not isinstance(value, str):
        assert json.dumps(json.loads(shown), indent=2) == json.dumps(value, indent=2)
    assert shown == indented(shown)


@pytest.mark.parametrize("text", ["", "text", "{", "[1,]", "NaN", "[Infinity]", "{'a': 1}", "1 2", "-", '"', "﻿{}"])
def test_what_is_no_json_is_not_shown_as_such(text: str) -> None:
    assert indented(text) is None


def test_numbers_and_names_in_json_stay_as_they_are_written() -> None:
    assert indented('{"b":1.10,"a":12345678901234567890123,"b":1e400}') == (
        '{\n  "b": 1.10,\n  "a": 12345678901234567890123,\n  "b": 1e400\n}'
    )


def test_json_whose_indentation_would_be_larger_than_itself_is_text() -> None:
    assert indented("[" * JSON_DEPTH_MAX + "]" * JSON_DEPTH_MAX) is not None
    assert indented("[" * (JSON_DEPTH_MAX + 1) + "]" * (JSON_DEPTH_MAX + 1)) is None
    assert indented("[" * 100_000) is None


@given(st.binary(max_size=50))
def test_any_bytes_have_a_view_that_json_can_say(data: bytes) -> None:
    shown = view(data, len(data), None)
    assert shown is not None
    assert bytes.fromhex(shown["hex"]) == data
    assert shown["text"] is None or shown["text"].encode() == data
    json.dumps(shown)
    assert view(None, 0, None) is None


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a page and a registry beside it."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with LocalBroker(folder / "data", http=True, schema_registry=True) as running:
        yield running


def test_a_value_that_names_a_schema_is_shown_by_it(broker: LocalBroker, new_topic: str) -> None:
    registry = RegistryClient(broker.schema_registry_url)
    inner = {"type": "record", "name": "Inner", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    outer = {"type": "record", "name": "Outer", "namespace": "n", "fields": [{"name": "inner", "type": "Inner"}]}
    registry.register(f"{new_topic}-inner", json.dumps(inner))
    from pylog_spark.registry.model import Reference

    by_outer = registry.register(
        f"{new_topic}-value", json.dumps(outer), references=[Reference("n.Inner", f"{new_topic}-inner", 1)]
    )
    by_json = registry.register(f"{new_topic}-json", '{"type": "object"}', schema_type="JSON")
    values = [
        b"\0" + by_outer.to_bytes(4, "big") + b"\x0a",
        b"\0" + by_json.to_bytes(4, "big") + b'{"a":1}',
        b"\0" + by_outer.to_bytes(4, "big") + b"\xff",
        b"\0" + (999).to_bytes(4, "big") + b"\x0a",
        b"\0\0",
        b"\0" + by_outer.to_bytes(4, "big") + b"\x0a" * VIEW_BYTES_MAX,
    ]
    with Admin(broker.bootstrap_servers) as admin, Producer(broker.bootstrap_servers, new_topic) as producer:
        admin.create_topic(new_topic, 1, 1)
        for value in values:
            producer.send(value, value)
    records = Page(broker.http_url).get("topics", new_topic, "records", from_="earliest").said["records"]
    shown = [(each["value"]["avro"], each["value"]["schema"]) for each in records]
    assert shown == [
        ('{\n  "inner": {\n    "x": 5\n  }\n}', by_outer),
        ('{"a":1}', by_json),
        (None, by_outer),
        (None, None),
        (None, None),
        (None, None),
    ]
    assert records[0]["key"]["avro"] == shown[0][0]
