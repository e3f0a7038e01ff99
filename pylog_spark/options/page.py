"""``docs/options.md``, made from the table of options."""

from pylog_spark.errors import CONDITIONS, native
from pylog_spark.options.java import IGNORED, REFUSED
from pylog_spark.options.table import OPTIONS


def options_table() -> str:
    """Render the options as a Markdown table, for the documentation."""
    lines = ["| option | value | default | in | meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        default = option.default or "none"
        kind = option.kind.replace("|", "\\|")
        lines.append(f"| `{option.name}` | {kind} | {default} | {', '.join(option.scopes)} | {option.doc} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Render ``docs/options.md``. A test keeps the file equal to this; ``python -m pylog_spark.options`` writes it anew."""
    conditions = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in CONDITIONS.items())
    ignored = "".join(f"| `kafka.{name}` | {reason} |\n" for name, reason in sorted(IGNORED.items()))
    refused = "".join(
        f"| `kafka.{name}` | {reason} |\n" for name, reason in sorted(REFUSED.items()) if not _secures(name)
    )
    client = "".join(
        f"| `kafka.{name}` | {kind} | {default or 'none'} | {meaning} |\n"
        for name, kind, default, meaning in sorted(native().client_settings())
    )
    return _PAGE.format(options=options_table(), conditions=conditions, client=client, ignored=ignored, refused=refused)


def _secures(name: str) -> bool:
    return name.startswith(("sasl.", "ssl."))


_PAGE = """# Options of format("pylog")

Names are read in any case. Those that Spark's Kafka connector has too mean the same here. Written by
`python -m pylog_spark.options > docs/options.md` from their declarations.

{options}
## Settings of the client

A `kafka.<name>` is a setting of the client under Kafka's own name:

| setting | value | default | meaning |
|---|---|---|---|
{client}
The other settings of Kafka's Java clients are either accepted without effect, so that a query written for Spark's connector
runs unchanged, or refused by a sentence. A name that neither client has is refused as a typing error.

| accepted, without effect | because |
|---|---|
{ignored}
| refused | because |
|---|---|
{refused}| `kafka.sasl.*`, `kafka.ssl.*` | TLS and SASL are not built yet: this client speaks to PLAINTEXT listeners only |

## Columns

A read gives `key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT`, and with `includeHeaders` also
`headers ARRAY<STRUCT<key: STRING, value: BINARY>>`. With `.schema("value BINARY")`, or any other choice of these columns
in any order, only those are built, which is faster.

A write takes `value` (STRING or BINARY, required; null is a tombstone), `key` (STRING or BINARY), `topic` (STRING), `partition` (INT),
`timestamp` (TIMESTAMP), `headers`. Other columns are left alone. Rows with a key go where Kafka's own clients would put
them (murmur2), rows without one to one partition after the other, a batch at a time.

## Errors

Each error is a condition and one sentence. Spark shows it before and after the Python traceback; the setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled=true` leaves only the sentence of errors in tasks.

| condition | meaning |
|---|---|
{conditions}"""
