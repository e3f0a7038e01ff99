"""Reads a schema of any type. Pure; a type's code is loaded with its first schema: jsonschema alone takes a good tenth of a second."""

from __future__ import annotations

from pylog_spark.registry.model import AVRO, JSON, Schema
from pylog_spark.registry.schemas import ParsedSchema, Referred


def parsed(schema: Schema, referred: Referred) -> ParsedSchema:
    """Read a schema. Raises `SchemaError`: it is none."""
    if schema.schema_type == AVRO:
        from pylog_spark.registry.schemas.avro import parse

        return parse(schema.text, [text for _, text in referred])
    if schema.schema_type == JSON:
        from pylog_spark.registry.schemas.json_schema import parse_json

        return parse_json(schema.text, referred)
    from pylog_spark.registry.schemas.protobuf import parse_protobuf

    return parse_protobuf(schema.text, referred)
