"""``docs/options.md``, made from the table of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pylog_spark.errors import CONDITIONS, native
from pylog_spark.markdown import table
from pylog_spark.options.java import IGNORED, REFUSED
from pylog_spark.options.table import OPTIONS

if TYPE_CHECKING:
    from pylog_spark._native import SettingRow


def options_table() -> str:
    """Render the options as a Markdown table, for the documentation."""
    rows = (
        (f"`{option.name}`", option.kind, option.default or "none", ", ".join(option.scopes), option.doc)
        for option in OPTIONS
    )
    return table(("option", "value", "default", "in", "meaning"), rows)


def page() -> str:
    """Render ``docs/options.md``. A test keeps the file equal to this; ``python -m pylog_spark.options`` writes it anew."""
    conditions = table(("condition", "meaning"), ((f"`{name}`", meaning) for name, meaning in CONDITIONS.items()))
    ignored = table(("accepted, without effect", "because"), _reasons(IGNORED))
    refused = table(("refused", "because"), _reasons(REFUSED))
    client = table(("setting", "value", "default", "meaning"), map(_client_row, native().settings("client")))
    return _PAGE.format(options=options_table(), conditions=conditions, client=client, ignored=ignored, refused=refused)


def _reasons(names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(f"`kafka.{name}`", reason) for name, reason in sorted(names.items())]


def _client_row(row: SettingRow) -> tuple[str, str, str, str]:
    kind = "number" if row.kind in ("INT", "LONG") else row.kind.lower()
    if row.words:
        *words, last = row.words
        kind = f"{', '.join(words)} or {last}"
    default = str(row.default).lower() if isinstance(row.default, bool) else str(row.default)
    doc = row.doc
    if row.aliases:
        doc = f"{doc} Also known as {', '.join(f'`kafka.{name}`' for name in row.aliases)}."
    return f"`kafka.{row.name}`", kind, default or "none", doc


_PAGE = """# Options of format("pylog")

Option names are case-insensitive. Those that Spark's Kafka connector has too mean the same here. This page is written by
`python -m pylog_spark.options > docs/options.md` from the options' declarations.

{options}
## Settings of the client

A `kafka.<name>` is a setting of the client under Kafka's own name:

{client}
A query names a function, a file with a token or a variable only where [the environment of Spark's driver lists it](security-clients.md#what-a-query-may-name).
The other settings of Kafka's Java clients are either accepted without effect, so that a query written for Spark's connector
runs unchanged, or refused with the reason. A name that neither client knows is refused, with the nearest known name.

{ignored}
{refused}
## Columns

A read gives `key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT`, and with `includeHeaders` also
`headers ARRAY<STRUCT<key: STRING, value: BINARY>>`. With `.schema("value BINARY")`, or any other choice of these columns
in any order, only those are built, which is faster. With `valueFormat` or `keyFormat` a read has [typed columns](typed.md).

A write takes `value` (STRING or BINARY, required; null is a tombstone), `key` (STRING or BINARY), `topic` (STRING), `partition` (INT),
`timestamp` (TIMESTAMP), `headers`. Other columns are left alone, unless `valueFormat` makes the value of them. Rows with a key go where Kafka's own clients would put
them (murmur2), rows without one to one partition after the other, a batch at a time.

## Errors

An error has a condition, which programs can look for, and one sentence. Spark shows both before and after the Python traceback; the setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled=true` leaves the traceback of errors in tasks out.

{conditions}"""
