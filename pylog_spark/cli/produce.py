"""``pylog produce``: each line becomes a record."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator

import click

from pylog_spark.audit.document import PUBLISH_EVERY_S, WINDOW_MS, Audit
from pylog_spark.cli.common import (
    bootstrap_option,
    client_config_option,
    client_settings,
    duration_ms,
    echo_json,
    named_values,
    say,
)
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.producer import Producer
from pylog_spark.results.writes import FlushResult

_CHUNK_BYTES = 256 * 1024
# After a pause of the input of so many seconds, the records so far are sent and acknowledged.
_PAUSE_S = 0.05
# After a longer one what was written is said in the audit topic, and at the latest every PUBLISH_EVERY_S.
_LONG_PAUSE_S = 2.0
# Smaller files need no progress bar.
_PROGRESS_FROM_BYTES = 4 * 1024 * 1024

_EPILOG = """\b
Examples:
  echo 'hello' | pylog produce events
  pylog produce events events.jsonl --compression zstd
  printf 'k1:one\\nk2:two\\n' | pylog produce events --key-separator :
  tail -f app.log | pylog produce logs --header host=$(hostname)
  pylog produce events events.jsonl --audit-topic audit
"""


@click.command(epilog=_EPILOG)
@click.argument("topic")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--key-separator",
    "-k",
    metavar="TEXT",
    help="What separates key and value in a line; without it there are no keys.",
)
@click.option("--null-value", metavar="TEXT", help="A value written like this becomes null (a tombstone).")
@click.option("--header", "-H", "headers", multiple=True, callback=named_values, metavar="NAME=VALUE",
              help="A header of every record. Repeatable.")  # fmt: skip
@click.option("--partition", "-p", type=click.IntRange(0), help="Write to this partition only.")
@click.option("--compression", "-z", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
              help="How batches are compressed.  [default: none]")  # fmt: skip
@click.option(
    "--audit-topic", metavar="TOPIC", help="Say in this topic how many records were written when, for pylog audit."
)
@click.option("--audit-window", type=duration_ms, metavar="DURATION", default=f"{WINDOW_MS // 60_000}m", show_default=True,
              help="Length of the windows in which records are counted for --audit-topic.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON how much was written, and where.")
@bootstrap_option
@client_config_option
def produce(
    topic: str,
    file: str | None,
    key_separator: str | None,
    null_value: str | None,
    headers: list[tuple[str, str]],
    partition: int | None,
    compression: str | None,
    audit_topic: str | None,
    audit_window: int,
    as_json: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Write each line of FILE, or of standard input, as a record into TOPIC.

    Lines are taken as bytes, whatever their encoding. It returns when every record is acknowledged.
    """
    if file is None and sys.stdin.isatty():
        say("Type one record on each line; Ctrl-D ends.", err=True)
    compressed = [("compression.type", compression)] if compression else []
    settings = client_settings(bootstrap, [*compressed, *client_config])
    encoded = [(name, value.encode()) for name, value in headers]
    split = _splitter(key_separator, null_value)
    with Admin(bootstrap, client_settings(bootstrap, client_config)) as admin:
        admin.cluster()  # a wrong address fails here at once, not after the producer's time-out
    audit = Audit(audit_topic, audit_window) if audit_topic else None
    with Producer(bootstrap, topic, settings, audit) as producer:
        publish_s = time.monotonic() + PUBLISH_EVERY_S
        for lines, paused_s in _chunks_of_lines(file):
            for line in lines:
                key, value = split(line)
                producer.send(value, key, partition=partition, headers=encoded)
            if audit and (paused_s >= _LONG_PAUSE_S or time.monotonic() >= publish_s):
                producer.publish()
                publish_s = time.monotonic() + PUBLISH_EVERY_S
            elif paused_s:
                producer.flush()
        written = producer.publish()
    _report(topic, written, as_json)


def _splitter(separator: str | None, null_value: str | None) -> Callable[[bytes], tuple[bytes | None, bytes | None]]:
    between = separator.encode() if separator else None
    null = null_value.encode() if null_value is not None else None

    def split(line: bytes) -> tuple[bytes | None, bytes | None]:
        key: bytes | None = None
        value = line
        if between is not None:
            key, found, value = line.partition(between)
            if not found:
                raise LogError("INVALID_ARGUMENT", f"A line has no {separator!r} between key and value: {line[:80]!r}.")
        return key, (None if value == null else value)

    return split


def _chunks_of_lines(file: str | None) -> Iterator[tuple[list[bytes], float]]:
    """Whole lines as they arrive, and how long the input has paused after them (a slow pipe, a person typing): 0, `_PAUSE_S`, and then
    once, without lines, `_LONG_PAUSE_S`."""
    source = os.open(file, os.O_RDONLY) if file is not None else sys.stdin.fileno()
    size = os.fstat(source).st_size if file is not None else 0
    watched = size >= _PROGRESS_FROM_BYTES and sys.stderr.isatty()
    with click.progressbar(length=max(size, 1), label="Writing", file=sys.stderr, hidden=not watched) as bar:
        try:
            rest = b""
            while chunk := os.read(source, _CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                # A file and an ended pipe are always readable.
                paused = not _readable(source, _PAUSE_S)
                yield lines, _PAUSE_S if paused else 0.0
                if paused and not _readable(source, _LONG_PAUSE_S - _PAUSE_S):
                    yield [], _LONG_PAUSE_S
                bar.update(len(chunk))
            if rest:
                yield [rest], 0.0
        finally:
            if file is not None:
                os.close(source)


def _readable(source: int, within_s: float) -> bool:
    return bool(select.select([source], [], [], within_s)[0])


def _report(topic: str, written: FlushResult, as_json: bool) -> None:
    offsets = written.offsets
    if as_json:
        spans = [
            {"topic": name, "partition": number, "first_offset": span.first, "last_offset": span.last}
            for (name, number), span in sorted(offsets.items())
        ]
        echo_json({"records": written.records, "bytes": written.bytes, "offsets": spans})
    else:
        count = written.records
        where = f"{len(offsets)} partitions" if len(offsets) != 1 else f"partition {next(iter(offsets)).partition}"
        say(f"Wrote {count} record{'' if count == 1 else 's'} to {topic} ({where}).", err=True)
