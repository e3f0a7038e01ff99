"""``pylog consume``: print records as they arrive."""

import sys
from collections.abc import Callable

import click

from pylog_spark.cli.common import bootstrap_option, client_config_option, client_settings, milliseconds, say
from pylog_spark.client.consumer import Consumer, Record
from pylog_spark.client.json_lines import to_line

_EPILOG = """\b
Examples:
  pylog consume events --from-beginning
  pylog consume events --exit-at-end --json > events.jsonl
  pylog consume events --offset 1000 --partition 0 --max-messages 10
  pylog consume events --timestamp 2026-01-31T12:00 --format key-value

Without a start it begins with new records; with --exit-at-end, at the beginning. JSON shows bytes
that are not UTF-8 as {"base64": "..."}. It joins no group and commits no offsets.
"""


@click.command(epilog=_EPILOG)
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record.")
@click.option("--offset", type=int, help="Begin at this offset.")
@click.option(
    "--timestamp",
    metavar="TIME",
    help="Begin at the first record of this time: ms since 1970, or 2026-01-31T12:00 (UTC if no zone is given).",
)
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(0), multiple=True, help="Only this partition. Repeatable."
)
@click.option("--max-messages", "-n", type=click.IntRange(1), help="Stop after this many records.")
@click.option("--exit-at-end", "-e", is_flag=True, help="Stop after the records that are there now.")
@click.option("--format", "-f", "form", type=click.Choice(["value", "key-value", "json"]), default="value", show_default=True,
              help="How a record is printed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--isolation", type=click.Choice(["read_committed", "read_uncommitted"]), default="read_committed",
              show_default=True, help="read_uncommitted also shows records of open and aborted transactions.")  # fmt: skip
@click.option("--key-separator", "-k", default="\t", help="What is printed between key and value.  [default: a tab]")
@bootstrap_option
@client_config_option
def consume(
    topic: str,
    from_beginning: bool,
    offset: int | None,
    timestamp: str | None,
    partitions: tuple[int, ...],
    max_messages: int | None,
    exit_at_end: bool,
    form: str,
    as_json: bool,
    isolation: str,
    key_separator: str,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Print the records of TOPIC as they arrive, each on a line."""
    if sum((from_beginning, offset is not None, timestamp is not None)) > 1:
        raise click.UsageError("Give one of --from-beginning, --offset and --timestamp.")
    start: int | str = "earliest" if from_beginning or exit_at_end else "latest"
    consumer = Consumer(
        bootstrap,
        topic,
        partitions=partitions or None,
        start=start if offset is None else offset,
        start_timestamp_ms=None if timestamp is None else milliseconds(timestamp),
        follow=not exit_at_end,
        config={"isolation.level": isolation, **client_settings(bootstrap, client_config)},
    )
    if start == "latest" and offset is None and timestamp is None and sys.stderr.isatty():
        say("Waiting for new records (--from-beginning shows the old ones too). Ctrl-C ends.", err=True)
    _print(consumer, _formatter("json" if as_json else form, key_separator), max_messages)


def _print(consumer: Consumer, formatted: Callable[[Record], bytes], most: int | None) -> None:
    out = sys.stdout.buffer
    count = 0
    with consumer:
        for records in consumer.batches():
            for record in records:
                out.write(formatted(record))
                count += 1
                if count == most:
                    out.flush()
                    return
            out.flush()


def _formatter(form: str, separator: str) -> Callable[[Record], bytes]:
    if form == "json":
        return to_line
    if form == "value":
        return lambda record: (record.value or b"") + b"\n"
    between = separator.encode()
    return lambda record: (record.key or b"") + between + (record.value or b"") + b"\n"
