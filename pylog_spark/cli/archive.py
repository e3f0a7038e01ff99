"""``pylog archive``: a topic in a file, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pylog_spark.cli.common import (
    SettingOption,
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    echo_json,
    echo_table,
    json_option,
    milliseconds,
    plural,
)

if TYPE_CHECKING:
    from pylog_spark.archive.document import Beginning, Ending

_EPILOG = """\b
Examples:
  pylog archive export orders -o orders.pylog.zst
  pylog archive verify orders.pylog.zst
  pylog archive import orders.pylog.zst --topic orders-2025

The file is a tar archive in zstandard: 'tar --zstd -xf FILE -C DIR' gives a data directory that
format("pylog") and 'pylog inspect' read without a broker.
"""


def _time(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    return None if text is None else milliseconds(text)


@click.group(epilog=_EPILOG)
def archive() -> None:
    """Write a topic into a file, byte by byte, and make a topic of it again."""


@archive.command("export")
@click.argument("topic")
@click.option(
    "--output", "-o", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The file; it must be new."
)
@click.option("--since", callback=_time, metavar="TIME",
              help="Begin with the first record of this time: ms since 1970, or 2026-01-31T12:00 (UTC if no zone is given).")  # fmt: skip
@click.option("--until", callback=_time, metavar="TIME", help="End before the first record of this time.")
@click.option(
    "--level",
    type=click.IntRange(1, 22),
    default=3,
    show_default=True,
    help="zstandard's level; 10 and more are slow and small.",
)
@click.option("--resume", is_flag=True, help="Go on with an export into this file that was cut.")
@bootstrap_option
@client_config_option
def export_(
    topic: str,
    output: str,
    since: int | None,
    until: int | None,
    level: int,
    resume: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Write TOPIC into FILE: its record batches as they are stored, with its settings.

    Records of transactions that are open are not in it, nor what comes behind them. Whole batches are written, so a few records before
    --since and behind --until may be in the file; readers of it and a restored topic begin at --since all the same. Apache Kafka's topics
    can be exported, too.
    """
    from pylog_spark.archive.exporting import ExportOptions, export

    with admin_of(bootstrap, client_config) as admin, _progress("exported") as report:
        ending = export(admin, topic, output, ExportOptions(since, until, level, resume), report)
    click.echo(f"{output}: {_summary(ending)}")


@archive.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--topic", "-t", metavar="NAME", help="Name of the topic that is made.  [default: as in the file]")
@click.option("--config", "-c", "settings", cls=SettingOption, owners=["topic"],
              help="A setting of the topic that is to be other than in the file. Repeatable.")  # fmt: skip
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1),
    help="Replicas; as in the file, or as many as there are brokers, when left out.",
)
@bootstrap_option
@client_config_option
def import_(
    file: str,
    topic: str | None,
    settings: list[tuple[str, str]],
    replication_factor: int | None,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Make a topic of FILE: the same records, headers, times, transactions and settings, at the same offsets.

    The brokers must be pylog's. The topic must be new; when an import was cut, the same command goes on with it, and nobody else writes to
    the topic until it is whole. It keeps all records: retention.ms and retention.bytes are set only by --config.
    """
    from pylog_spark.archive.restoring import RestoreOptions, restore

    def say(line: str) -> None:
        click.echo(f"{line}.", err=True)

    options = RestoreOptions(topic, dict(settings), replication_factor)
    with admin_of(bootstrap, client_config) as admin, _progress("imported") as report:
        name, batches = restore(admin, file, options, say, report)
    click.echo(f"Topic {name} is whole: {plural(batches, 'batch').replace('batchs', 'batches')} imported.")


@archive.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@json_option
def verify(file: str, as_json: bool) -> None:
    """Read all of FILE, and look at each checksum. Exit code 1 when it is damaged or not whole."""
    from pylog_spark.archive.checking import verify as verified

    beginning, ending = verified(file)
    if as_json:
        echo_json({"begin": document(beginning), "end": document(ending)})
        return
    _show(beginning, ending)
    click.echo(f"{file} is whole: {_summary(ending)}", err=True)


def _show(beginning: Beginning, ending: Ending) -> None:
    totals = {each.partition: each for each in ending.totals}
    rows = [
        (
            beginning.topic,
            each.partition,
            each.start,
            each.end,
            total.segments,
            total.batches,
            total.records,
            total.bytes,
        )
        for each in beginning.ranges
        for total in [totals[each.partition]]
    ]
    echo_table(["TOPIC", "PARTITION", "START", "END", "SEGMENTS", "BATCHES", "RECORDS", "BYTES"], rows)


def _summary(ending: Ending) -> str:
    records = sum(each.records for each in ending.totals)
    return f"{plural(records, 'record')} in {plural(len(ending.totals), 'partition')} of topic {ending.topic}."


@contextmanager
def _progress(done: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _done, _whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(f"offsets {done}", total=None)
        yield lambda offsets, whole: shown.update(task, completed=offsets, total=whole)
