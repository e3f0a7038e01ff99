"""What the user says of a table, and how a later schema is merged into it. Pure: schemas are Spark's own JSON, as dictionaries.

A schema may change by new fields, also inside of structs; they become nullable, and rows of before have null in them. Fields that a later
schema lacks stay. A field whose type is another one is refused: files of both types could not be read together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pylog_spark.errors import PylogError

#: Columns of the record that every table has, with their types in Spark.
RECORD_COLUMNS = {
    "topic": "string",
    "partition": "integer",
    "offset": "long",
    "timestamp": "timestamp",
    "key": "binary",
}
#: A partition column that is made of the record's timestamp, where the value has no column of this name: its day, UTC.
DATE = "date"

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class TableSpec:
    """How records become rows of a table.

    Attributes
    ----------
    value_schema : dict or None
        Spark's schema of the value, which is JSON; None keeps the value's bytes as a column ``value``.
    partition_by : tuple of str
        The columns by which files lie in folders.
    prefix : str
        Before the names of the record's columns.
    """

    value_schema: Schema | None = None
    partition_by: tuple[str, ...] = (DATE,)
    prefix: str = ""

    def __post_init__(self) -> None:
        record = set(self.record_names)
        names = [str(field["name"]) for field in self.value_fields]
        both = sorted(record & set(names))
        if both:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {both[0]} of the value is also a column of the record; give record_prefix, such as 'record_'.",
            )
        unknown = sorted(set(self.partition_by) - record - {*names, DATE})
        if unknown:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"partition_by names {unknown[0]}, which is no column of the table; it has {', '.join([*sorted(record), *names, DATE])}.",
            )

    @property
    def record_names(self) -> list[str]:
        """The names of the record's columns in the table."""
        names = [self.prefix + name for name in RECORD_COLUMNS]
        return names if self.value_schema is not None else [*names, f"{self.prefix}value"]

    @property
    def value_fields(self) -> Sequence[Schema]:
        """The value's own columns."""
        return [] if self.value_schema is None else self.value_schema["fields"]

    @property
    def makes_date(self) -> bool:
        """Whether `DATE` is made of the record's timestamp."""
        return DATE in self.partition_by and DATE not in {
            *self.record_names,
            *(field["name"] for field in self.value_fields),
        }

    @property
    def table_schema(self) -> Schema:
        """Spark's schema of the table."""
        types = {**RECORD_COLUMNS, "value": "binary"}
        fields = [_field(name, types[name.removeprefix(self.prefix)]) for name in self.record_names]
        made = [_field(DATE, "date")] if self.makes_date else []
        return {"type": "struct", "fields": [*fields, *self.value_fields, *made]}

    def merged(self, later: TableSpec) -> TableSpec:
        """Give the spec of a table that was made with this one, and gets rows of `later`.

        Raises
        ------
        PylogError
            ``PYLOG_INVALID_SCHEMA`` when rows of both cannot be in one table.
        """
        if self.partition_by != later.partition_by or self.prefix != later.prefix:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The table has partition_by {list(self.partition_by)} and record_prefix {self.prefix!r}, and these cannot change; "
                "load into another table.",
            )
        if (self.value_schema is None) != (later.value_schema is None):
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                "The table keeps values " + ("as bytes" if self.value_schema is None else "by their schema")
                + ", and this cannot change; load into another table.",
            )  # fmt: skip
        if self.value_schema is None or later.value_schema is None:
            return self
        return replace(self, value_schema=_merged(self.value_schema, later.value_schema, ""))

    def to_document(self) -> dict[str, Any]:
        """For a commit."""
        return {"value_schema": self.value_schema, "partition_by": list(self.partition_by), "prefix": self.prefix}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TableSpec:
        """Read a document of `to_document`."""
        return cls(document["value_schema"], tuple(document["partition_by"]), document["prefix"])


def _field(name: str, kind: str) -> Schema:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _merged(one: Any, other: Any, name: str) -> Any:
    """The type that has the fields of both."""
    if one == other:
        return one
    kinds = tuple(kind["type"] if isinstance(kind, Mapping) else None for kind in (one, other))
    if kinds == ("struct", "struct"):
        return {"type": "struct", "fields": _merged_fields(one["fields"], other["fields"], name)}
    if kinds == ("array", "array"):
        element = _merged(one["elementType"], other["elementType"], f"{name}[]")
        return {"type": "array", "elementType": element, "containsNull": True}
    if kinds == ("map", "map") and one["keyType"] == other["keyType"]:
        value = _merged(one["valueType"], other["valueType"], f"{name}[]")
        return {**one, "valueType": value, "valueContainsNull": True}
    raise PylogError(
        "PYLOG_INVALID_SCHEMA",
        f"The column {name} is {_shown(one)} in the table and {_shown(other)} in the schema; give it another name, or load into another "
        "table.",
    )


def _merged_fields(ours: Sequence[Schema], theirs: Sequence[Schema], name: str) -> list[Schema]:
    later = {field["name"]: field for field in theirs}
    inside = f"{name}." if name else ""
    merged = []
    for field in ours:
        new = later.pop(field["name"], None)
        kind = field["type"] if new is None else _merged(field["type"], new["type"], inside + field["name"])
        merged.append({**field, "type": kind, "nullable": True})
    return merged + [{**field, "nullable": True} for field in later.values()]


def _shown(kind: Any) -> str:
    return str(kind["type"] if isinstance(kind, Mapping) else kind)
