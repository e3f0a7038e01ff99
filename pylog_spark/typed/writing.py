"""The columns of a typed write: which are the record's own, and which make its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError, native, translated
from pylog_spark.schema import READ_COLUMNS, WRITE_COLUMNS, check_write_types
from pylog_spark.typed.arrow import arrow_field
from pylog_spark.typed.formats import BINARY, PLAIN, WITH_FIELDS, Formats

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType


@dataclass(frozen=True)
class TypedWrite:
    """How the columns of a frame become records; plain values, pickled with the writer.

    Attributes
    ----------
    formats : Formats
        The formats of keys and values.
    fields : tuple of str
        The frame's columns that are fields of the value; none where the value is one column.
    """

    formats: Formats
    fields: tuple[str, ...]

    def records(self, batch: pa.RecordBatch, columns: Mapping[str, str]) -> pa.RecordBatch:
        """Give the columns of records, under the record's names, with keys and values as bytes.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Rows of the frame.
        columns : mapping of str to str
            The record's column -> the frame's column.
        """
        import pyarrow as pa

        arrays = {name: batch.column(column) for name, column in columns.items()}
        if self.fields:
            chosen = batch.select(list(self.fields))
            arrays["value"] = pa.StructArray.from_arrays(chosen.columns, fields=list(chosen.schema))
        plain = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        forms = self.formats
        with translated():
            return pa.record_batch(
                native().encode(
                    plain,
                    key=None if forms.key == BINARY else forms.key,
                    value=None if forms.value == BINARY else forms.value,
                )
            )


def typed_write(schema: StructType, topic: str | None, formats: Formats) -> tuple[dict[str, str], TypedWrite]:
    """Check the columns of a frame to be written; give the record's own (the record's name -> the frame's), and what makes the value.

    Parameters
    ----------
    schema : StructType
        Of the frame.
    topic : str or None
        The option `topic`; with it the column is not needed.
    formats : Formats
        The formats of keys and values.

    Raises
    ------
    PylogError
        A column that is needed is missing, or has a type that cannot be written.
    """
    of_record = {formats.prefix + name: name for name in READ_COLUMNS}
    own: dict[str, StructField] = {}
    fields = []
    for field in schema.fields:
        name = of_record.get(field.name)
        if name is None:
            fields.append(field)
        elif name in WRITE_COLUMNS and not (name == "value" and formats.value in WITH_FIELDS):
            own[name] = field
        else:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"The column {field.name} cannot be written: {_why_not(name, formats)}; drop it, or set recordPrefix to write it as a "
                "field of the value.",
            )
    if formats.value in WITH_FIELDS:
        if not fields:
            raise PylogError(
                "PYLOG_INVALID_SCHEMA",
                f"With valueFormat={formats.value} the columns of the frame make the value, and it has none besides those of the record.",
            )
        for field in fields:
            arrow_field(field)
    elif "value" not in own:
        names = ", ".join(field.name for field in schema.fields) or "none"
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A write with valueFormat={formats.value} needs a column {formats.prefix}value, and the frame has only {names}.",
        )
    _check_types(own, formats)
    if topic is None and "topic" not in own:
        raise PylogError(
            "PYLOG_INVALID_SCHEMA",
            f"A write needs a topic: give the option topic or a column {formats.prefix}topic of type STRING.",
        )
    if topic is not None:
        own.pop("topic", None)
    made = tuple(field.name for field in fields) if formats.value in WITH_FIELDS else ()
    return {name: field.name for name, field in own.items()}, TypedWrite(formats, made)


def _why_not(name: str, formats: Formats) -> str:
    if name == "value":
        return f"with valueFormat={formats.value} the other columns make the value"
    return "it is what brokers say of a record"


def _check_types(own: Mapping[str, StructField], formats: Formats) -> None:
    accepted: dict[str, Sequence[str]] = dict(WRITE_COLUMNS)
    for name, form in (("key", formats.key), ("value", formats.value)):
        if form in WITH_FIELDS:
            accepted[name] = ("struct",)
        elif form != BINARY:
            accepted[name] = (PLAIN[form],)
    check_write_types(own, accepted)
    if formats.key in WITH_FIELDS and "key" in own:
        arrow_field(own["key"])
