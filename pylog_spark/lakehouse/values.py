"""The columns of a table, made of the columns that ``format("pylog")`` gives: the one place that knows how values are decoded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType, _parse_datatype_string

from pylog_spark.lakehouse.spec import DATE, RECORD_COLUMNS, Schema, TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VALUE = "value"


def struct_type(schema: Schema) -> StructType:
    """Spark's own type of a schema."""
    return StructType.fromJson(dict(schema))


def schema_of(given: str | StructType | None) -> Schema | None:
    """Give a user's schema of the value as Spark's JSON; a text is DDL."""
    if given is None:
        return None
    parsed = _parse_datatype_string(given) if isinstance(given, str) else given
    found: Schema = json.loads(parsed.json())
    return found


def rows_of(records: DataFrame, spec: TableSpec) -> DataFrame:
    """Give the rows of a table for records."""
    columns = [sf.col(name).alias(spec.prefix + name) for name in RECORD_COLUMNS]
    if spec.makes_date:
        columns.append(sf.to_date(sf.to_utc_timestamp("timestamp", sf.current_timezone())).alias(DATE))
    if spec.value_schema is None:
        return records.select(*columns, sf.col(_VALUE).alias(spec.prefix + _VALUE)).select(*_names(spec))
    decoded = sf.from_json(sf.col(_VALUE).cast("string"), struct_type(spec.value_schema))
    # The name of the struct cannot meet one of the table's: those of a schema are unique, and this one is longer than all of them.
    whole = "_".join(["value", *_names(spec)])
    rows = records.select(*columns, decoded.alias(whole))
    return rows.select(*[name for name in rows.columns if name != whole], f"`{whole}`.*").select(*_quoted(spec))


def _names(spec: TableSpec) -> list[str]:
    return [field["name"] for field in spec.table_schema["fields"]]


def _quoted(spec: TableSpec) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in _names(spec)]
