"""Typed reads of the Python client give what the data source gives, and need no pyspark."""

from __future__ import annotations

import json
import logging
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pylog_spark.client import LogError, Producer, read_directory, read_range
from pylog_spark.datasource import PylogDataSource
from pylog_spark.testing import LocalBroker
from pylog_spark.typed.avro import schema_of
from pylog_spark.typed.types import from_ddl
from tests.spark.support import Topic
from tests.typed.avro_support import datum, field, record
from tests.typed.support import as_pysparks, read

FLIGHT = record(field("id", "long"), field("to", ["null", "string"]))
PROTO = 'syntax = "proto3"; message Flight { int64 id = 1; string to = 2; repeated int32 seats = 3; }'


@pytest.fixture
def flights(make_topic: Callable[..., Topic]) -> Topic:
    """Two partitions with JSON, of which two records are damaged."""
    topic = make_topic(partitions=2)
    topic.put(['{"id":1,"to":"BER"}', "{", '{"id":"two"}', None], key=pa.array([b"a", None, b"b", b"c"], pa.binary()))
    topic.put(['{"id":4,"to":null,"more":[1]}'], partition=1)
    return topic


def by_data_source(topic: Topic, **options: str) -> pa.Table:
    """What the data source gives with its own columns."""
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "includeHeaders": "true", **options}
    columns = from_ddl(str(PylogDataSource(given).schema()))
    return read(topic, as_pysparks(columns), **options)


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_json_is_read_as_the_data_source_reads_it(flights: Topic, mode: str) -> None:
    ours = read_range(
        flights.servers,
        flights.name,
        value_format="json",
        value_schema="id long, to string",
        key_format="string",
        mode=mode,
    ).read_all()
    options = {"valueFormat": "json", "valueSchema": "id long, to string", "keyFormat": "string", "mode": mode}
    theirs = by_data_source(flights, **options)
    assert ours.schema == theirs.schema
    assert in_order(ours) == in_order(theirs)
    assert ours.num_rows == {"PERMISSIVE": 5, "DROPMALFORMED": 3}[mode]


def test_a_schema_is_arrows_ddl_or_sparks_json(flights: Topic) -> None:
    fields = pa.schema([("offset", pa.int64()), ("id", pa.int64()), ("_corrupt_record", pa.string())])
    ddl = "offset bigint, id bigint, _corrupt_record string"
    texts: list[Any] = [fields, ddl, as_pysparks(from_ddl(ddl)).json()]
    for schema in texts:
        found = read_range(flights.servers, flights.name, partitions=[0], value_format="json", schema=schema).read_all()
        assert found.schema == fields
        assert [tuple(row.values()) for row in found.to_pylist()] == [
            (0, 1, None),
            (1, None, "{"),
            (2, None, '{"id":"two"}'),
            (3, None, None),
        ]


def test_columns_are_picked_by_their_names_in_the_order_wanted(flights: Topic) -> None:
    picked = ["to", "offset", "_corrupt_record"]
    value_schema = pa.schema([("id", pa.int64()), ("to", pa.string())])
    found = read_range(
        flights.servers, flights.name, columns=picked, partitions=[1], value_format="json", value_schema=value_schema
    ).read_all()
    assert (found.column_names, found.to_pylist()) == (picked, [{"to": None, "offset": 0, "_corrupt_record": None}])


def test_a_record_that_does_not_parse_ends_a_read_where_that_is_asked(flights: Topic, caplog: Any) -> None:
    with pytest.raises(LogError, match="offset 1") as failed:
        read_range(flights.servers, flights.name, value_format="json", schema="id long", mode="FAILFAST").read_all()
    assert failed.value.kind == "BAD_RECORD"
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        read_range(
            flights.servers, flights.name, value_format="json", schema="id long", mode="dropmalformed"
        ).read_all()
    assert "left out 2 records that do not parse" in caplog.text


def test_avro_is_read_with_its_schema_and_by_the_ids_of_a_registry(
    registry_broker: LocalBroker, registered: Topic, tmp_path: Path
) -> None:
    rows = [{"id": 1, "to": "BER"}, {"id": 2, "to": None}]
    registered.put([datum(FLIGHT, row) for row in rows])
    schema, file = json.dumps(FLIGHT), tmp_path / "flight.avsc"
    file.write_text(schema)
    for given in (schema, file):
        bare = read_range(
            registered.servers, registered.name, columns=["id", "to"], value_format="avro", value_schema=given
        )
        assert bare.read_all().to_pylist() == rows
    topic = Topic(None, registered.servers, registered.client, f"{registered.name}-ids", 1)
    topic.create()
    url = registry_broker.schema_registry_url
    with closing(SchemaRegistryClient({"url": url})) as client:
        write = AvroSerializer(client, schema)
        topic.put([write(row, SerializationContext(topic.name, MessageField.VALUE)) for row in rows])
    by_subject = read_range(
        topic.servers, topic.name, value_format="avro", value_subject=f"{topic.name}-value", registry={"url": url}
    ).read_all()
    options = {"valueFormat": "avro", "valueSubject": f"{topic.name}-value", "schema.registry.url": url}
    theirs = by_data_source(topic, **options)
    assert (by_subject.schema, by_subject.to_pylist()) == (theirs.schema, theirs.to_pylist())
    by_columns = read_range(topic.servers, topic.name, value_format="avro", schema="to string", registry=url).read_all()
    assert by_columns["to"].to_pylist() == ["BER", None]


def test_protobuf_is_read_by_the_text_of_its_schema(make_topic: Callable[..., Topic], tmp_path: Path) -> None:
    topic = make_topic()
    topic.put([b"\x08\x05\x12\x03BER\x1a\x02\x01\x02", b""])
    file = tmp_path / "flight.proto"
    file.write_text(PROTO)
    sources: list[Any] = [PROTO, file]
    for source in sources:
        found = read_range(
            topic.servers, topic.name, columns=["id", "to", "seats"], value_format="protobuf", value_schema=source
        ).read_all()
        assert found.to_pylist() == [
            {"id": 5, "to": "BER", "seats": [1, 2]},
            {"id": None, "to": None, "seats": []},
        ]


def test_a_data_directory_is_read_typed(flights: Topic, tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data") as broker:
        table = read_range(flights.servers, flights.name, columns=["value"]).read_all()
        with Producer(broker.bootstrap_servers, "flights") as producer:
            producer.send_all(table)
    found = read_directory(tmp_path / "data", "flights", value_format="json", schema="id long").read_all()
    assert found["id"].to_pylist() == [1, None, None, None, 4]


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"value_format": "jsn"}, "PYLOG_INVALID_OPTION", r"^value_format must be one of json, avro.*not 'jsn'\.$"),
        (
            {"value_format": "json"},
            "PYLOG_INVALID_SCHEMA",
            r"value_format=json needs to know the columns; give them by schema=",
        ),
        ({"value_schema": "id long"}, "PYLOG_INVALID_OPTION", r"value_schema has no meaning with value_format=binary"),
        ({"schema": "id long"}, "PYLOG_INVALID_OPTION", r"A schema needs value_format or key_format beside it"),
        ({"mode": "FAILFAST"}, "PYLOG_INVALID_OPTION", r"mode needs value_format or key_format beside it"),
        (
            {"value_format": "long", "columns": ["id"]},
            "INVALID_ARGUMENT",
            r"no column 'id': the columns are key, value,",
        ),
        (
            {"value_format": "long", "schema": "value string"},
            "PYLOG_INVALID_SCHEMA",
            r"is BIGINT with value_format=long",
        ),
        (
            {"value_format": "avro", "value_schema": "{"},
            "PYLOG_INVALID_OPTION",
            r"Avro schema of value_schema cannot be used",
        ),
        (
            {"value_format": "protobuf", "value_schema": "message {"},
            "PYLOG_INVALID_OPTION",
            r"value_schema cannot be used",
        ),
        (
            {"value_format": "avro", "value_subject": "x"},
            "PYLOG_INVALID_OPTION",
            r"value_subject needs registry beside it",
        ),
    ],
)
def test_what_cannot_be_read_is_said_by_the_names_of_parameters(
    flights: Topic, given: dict[str, Any], kind: str, sentence: str
) -> None:
    with pytest.raises(LogError, match=sentence) as refused:
        read_range(flights.servers, flights.name, **given)
    assert refused.value.kind == kind


def test_an_argument_that_is_none_is_a_type_error(flights: Topic) -> None:
    unknown: dict[str, Any] = {"valueFormat": "json"}
    with pytest.raises(TypeError, match="no argument 'valueFormat': those of formats are value_format"):
        read_range(flights.servers, flights.name, **unknown)


def test_no_pyspark_is_needed(flights: Topic) -> None:
    program = f"""
import sys
sys.modules["pyspark"] = None
from pylog_spark.client import read_range
reader = read_range({flights.servers!r}, {flights.name!r}, columns=["id"], value_format="json", value_schema="id long")
print(sorted(reader.read_all()["id"].to_pylist(), key=str))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[1, 4, None, None, None]\n", "")


def frames() -> dict[str, Any]:
    """The same rows in frames of each library, with the types that it has for them."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = {"key": ["a", "b"], "id": [1, 2], "to": ["BER", None], "at": [at, at], "tags": [["x"], []]}
    table = pa.table(rows)
    return {
        "pyarrow": table,
        "pandas": pd.DataFrame(rows).astype({"to": "category"}),
        "polars": pl.DataFrame(rows),
        "duckdb": duckdb.from_arrow(table),
    }


@pytest.mark.parametrize("form", ["json", "avro", "protobuf"])
@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars", "duckdb"])
def test_frames_of_every_library_are_encoded_and_read_back(
    make_topic: Callable[..., Topic], form: str, library: str
) -> None:
    topic = make_topic()
    proto = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
        message Flight { int64 id = 1; string to = 2; google.protobuf.Timestamp at = 3; repeated string tags = 4; }"""
    options: dict[str, Any] = {"value_format": form, **({"value_schema": proto} if form == "protobuf" else {})}
    with Producer(topic.servers, topic.name) as producer:
        producer.send_all(frames()[library], key_format="string", **options)
    schema = "key string, id long, `to` string, at timestamp, tags array<string>"
    if form == "avro":
        options["value_schema"] = schema_of(from_ddl("id long, `to` string, at timestamp, tags array<string>"))
    found = read_range(topic.servers, topic.name, schema=schema, key_format="string", mode="FAILFAST", **options)
    assert found.read_all().to_pylist() == frames()["pyarrow"].to_pylist()


def test_what_send_all_encodes_is_what_a_write_of_the_data_source_encodes(
    registry_broker: LocalBroker, registered: Topic
) -> None:
    url = registry_broker.schema_registry_url
    frame = pa.table({"id": [1], "to": ["BER"]})
    with Producer(registered.servers, registered.name) as producer:
        producer.send_all(frame, value_format="avro", registry=url)
        producer.send_all(pa.table({"key": [7], "value": ["x"]}), key_format="long")
    with closing(SchemaRegistryClient({"url": url})) as client:
        newest = client.get_latest_version(f"{registered.name}-value")
    columns = from_ddl("id long, `to` string")
    assert json.loads(newest.schema.schema_str) == json.loads(schema_of(columns))
    bare = read_range(registered.servers, registered.name, columns=["key", "value"]).read_all().to_pylist()
    datum_of = struct.pack(">bI", 0, newest.schema_id) + datum(json.loads(schema_of(columns)), {"id": 1, "to": "BER"})
    assert sorted(bare, key=str) == sorted(
        [{"key": None, "value": datum_of}, {"key": struct.pack(">q", 7), "value": b"x"}], key=str
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"value_format": "json", "schema": "id long"}, "schema has no meaning in a write"),
        ({"value_format": "json", "mode": "FAILFAST"}, "mode has no meaning in a write"),
        ({"value_format": "long"}, "value_format=long needs a column value, and the frame has only id"),
        ({"value_format": "avro", "value_schema": "{"}, "The schema is no Avro schema"),
        ({"value_format": "json"}, "column big has the type uint64"),
    ],
)
def test_what_cannot_be_encoded_is_refused_and_nothing_is_written(
    make_topic: Callable[..., Topic], given: dict[str, Any], sentence: str
) -> None:
    topic = make_topic()
    with Producer(topic.servers, topic.name) as producer:
        frame = pa.table({"id": [1], **({"big": pa.array([2], pa.uint64())} if "uint64" in sentence else {})})
        with pytest.raises(LogError, match=sentence):
            producer.send_all(frame, **given)
    assert topic.offsets() == [0]
