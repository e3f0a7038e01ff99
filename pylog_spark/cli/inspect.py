"""``pylog inspect``: what a data directory or an archive holds, read without brokers. Exit code 1 when --verify finds damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pylog_spark.cli.common import echo_json, echo_table, json_option, plural, say
from pylog_spark.client.errors import LogError, translated

if TYPE_CHECKING:
    from pylog_spark.archive.store.opening import StoredLog

_EPILOG = """\b
Examples:
  pylog inspect ./data
  pylog inspect /var/lib/kafka --topic orders --verify
  pylog inspect s3://logs/archive
"""


@click.command(epilog=_EPILOG)
@click.argument("directory", metavar="DIR")
@click.option("--topic", "-t", "topics", multiple=True, metavar="TOPIC",
              help="Look at this topic only. Repeatable.  [default: all but the brokers' own]")  # fmt: skip
@click.option("--internal", is_flag=True, help="Show the brokers' own topics, too.")
@click.option("--verify", is_flag=True,
              help="Read every record batch and look at its checksum. Exit code 1 when there is damage.")  # fmt: skip
@json_option
def inspect(directory: str, topics: tuple[str, ...], internal: bool, verify: bool, as_json: bool) -> None:
    """Show the partitions in DIR, the data directory of a broker, pylog's or Apache Kafka's, in use or not; or the URL or folder of an archive.

    Nothing is changed, and no broker is needed. END is where the log ends: behind it lies nothing, or what its broker would cut off when it
    starts. STABLE is how far readers of committed records get.
    """
    show_stored(directory, topics, internal=internal, verify=verify, as_json=as_json)


def show_stored(directory: str, topics: Sequence[str], *, internal: bool, verify: bool, as_json: bool) -> None:
    """Print what a data directory or an archive holds, as `pylog inspect` does.

    Raises
    ------
    LogError
        There is none, or not such a topic.
    click.exceptions.Exit
        It is damaged, and was to be verified.
    """
    from pylog_spark.archive.store.opening import open_stored

    with translated():
        found = open_stored(directory, "read_uncommitted", verify)
        partitions = _partitions(found, directory, topics, internal=internal)
        rows = [_row(found, topic, partition, verify=verify) for topic, partition in partitions]
    notices = found.take_notices()
    if as_json:
        echo_json({"partitions": rows, "notices": notices})
    else:
        heads = ["TOPIC", "PARTITION", "START", "STABLE", "END", "SEGMENTS", "BYTES"]
        more = ["BATCHES", "RECORDS", "CODECS"] if verify else []
        echo_table([*heads, *more], [[_shown(value) for value in row.values()] for row in rows])
    for line in notices:
        say(f"{line}.", err=True)
    if verify:
        what = plural(len(notices), "place") if notices else "nothing"
        say(f"Read {plural(sum(row['records'] for row in rows), 'record')}; {what} to report.", err=True)
        if notices:
            raise click.exceptions.Exit(1)


def _partitions(found: StoredLog, directory: str, topics: Sequence[str], *, internal: bool) -> list[tuple[str, int]]:
    """The partitions to show. Raises `LogError` for a topic that is not there."""
    described: list[dict[str, Any]] = found.describe_topics(list(topics) or None)
    for topic in described:
        if topic["error"] is not None:
            raise LogError(str(topic["error"]), f"{directory} has no topic {topic['name']!r}.")
    shown = [topic for topic in described if topics or internal or not topic["is_internal"]]
    return [(topic["name"], each["partition"]) for topic in shown for each in topic["partitions"]]


def _row(found: StoredLog, topic: str, partition: int, *, verify: bool) -> dict[str, Any]:
    row = {"topic": topic, "partition": partition, **found.inspect(topic, partition)}
    order = ("topic", "partition", "log_start_offset", "last_stable_offset", "log_end_offset", "segments", "bytes")
    verified = found.verify(topic, partition) if verify else {}
    return {
        **{name: row[name] for name in order},
        **{name: verified[name] for name in ("batches", "records", "codecs") if verify},
    }


def _shown(value: object) -> object:
    return ", ".join(value) or "-" if isinstance(value, list) else value
