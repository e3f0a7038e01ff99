"""``pylog archive``: a topic in a file, and back; an archive that grows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pylog_spark.cli.common import (
    SettingOption,
    admin_of,
    bootstrap_option,
    client_config_option,
    client_settings,
    document,
    echo_json,
    echo_table,
    json_option,
    plural,
    say,
    since_option,
    time_option,
    until_option,
)
from pylog_spark.cli.inspect import show_stored
from pylog_spark.client.errors import LogError

if TYPE_CHECKING:
    from pylog_spark.archive.document import Beginning, Ending
    from pylog_spark.archive.store.manifest import StoredSegment

_EPILOG = """\b
Examples:
  pylog archive export orders -o orders.pylog.zst
  pylog archive export orders -o orders.jsonl.zst
  pylog archive verify orders.pylog.zst
  pylog archive import orders.pylog.zst --topic orders-2025
  pylog archive copy orders events --to s3://bucket/logs
  pylog archive restore s3://bucket/logs orders
  pylog archive sync s3://bucket/logs gs://other/logs
  pylog archive list s3://bucket/logs

FILE.pylog.zst is a tar archive in zstandard: 'tar --zstd -xf FILE -C DIR' gives a data directory
that format("pylog") and 'pylog inspect' read without a broker. FILE.jsonl.zst has a line of JSON
for each record: 'zstd -dc FILE | jq'.
"""


_level_option = click.option(
    "--level",
    type=click.IntRange(1, 22),
    default=3,
    show_default=True,
    help="zstandard's level; 10 and more are slow and small.",
)


@click.group(epilog=_EPILOG)
def archive() -> None:
    """Write a topic into a file, byte by byte or as lines of JSON, and make a topic of it again; copy logs into an archive that grows."""


@archive.command("export")
@click.argument("topic")
@click.option(
    "--output", "-o", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="The file; it must be new."
)
@since_option
@until_option
@_level_option
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
    """Write TOPIC into FILE: its record batches as they are stored, with its settings; into FILE.jsonl.zst its records as lines of JSON.

    Records of transactions that are open are not in it, nor what comes behind them. Whole batches are written, so a few records before
    --since and behind --until may be in the file; readers of it and a restored topic begin at --since all the same. Apache Kafka's topics
    can be exported, too.
    """
    from pylog_spark.archive.exporting import ExportOptions, export
    from pylog_spark.archive.lines import SUFFIX, export_lines

    options = ExportOptions(since, until, level, resume)
    with _progress("offsets exported") as report:
        if output.endswith(SUFFIX):
            ending = export_lines(client_settings(bootstrap, client_config), topic, output, options, report)
        else:
            with admin_of(bootstrap, client_config) as admin:
                ending = export(admin, topic, output, options, report)
    say(f"{output}: {_summary(ending)}")


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
@click.option("--resume", is_flag=True, help="Of a file of lines: go on with an import of it that was cut.")
@bootstrap_option
@client_config_option
def import_(
    file: str,
    topic: str | None,
    settings: list[tuple[str, str]],
    replication_factor: int | None,
    resume: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Make a topic of FILE: the same records, headers, times, transactions and settings, at the same offsets.

    The brokers must be pylog's. The topic must be new; when an import was cut, the same command goes on with it, and nobody else writes to
    the topic until it is whole. It keeps all records: retention.ms and retention.bytes are set only by --config.

    Of lines of JSON the records are appended, to brokers of any kind, at new offsets; such an import that was cut goes on with --resume.
    """
    from pylog_spark.archive.checking import ArchiveReader
    from pylog_spark.archive.lines import LinesReader, is_lines
    from pylog_spark.archive.restoring import RestoreOptions, restore

    options = RestoreOptions(topic, dict(settings), replication_factor)
    if is_lines(file):
        from pylog_spark.archive.line_import import import_lines

        with _progress("offsets imported") as report:
            given = client_settings(bootstrap, client_config)
            name, records = import_lines(given, LinesReader(file), options, resume, _say, report)
        say(f"Topic {name} is whole: {plural(records, 'record')} imported.")
        return
    if resume:
        raise click.UsageError("--resume is for files of lines (.jsonl.zst): any other import goes on by itself.")
    with admin_of(bootstrap, client_config) as admin, _progress("offsets imported") as report:
        name, batches = restore(admin, ArchiveReader(file), options, _say, report)
    say(f"Topic {name} is whole: {plural(batches, 'batch', 'batches')} imported.")


@archive.command("restore")
@click.argument("url")
@click.argument("topic")
@click.option("--as", "name", metavar="NAME", help="Name of the topic that is made.  [default: as in the archive]")
@click.option("--config", "-c", "settings", cls=SettingOption, owners=["topic"],
              help="A setting of the topic that is to be other than in the archive. Repeatable.")  # fmt: skip
@click.option(
    "--replication-factor", "-r", type=click.IntRange(1), default=1, show_default=True, help="Replicas of the topic."
)
@bootstrap_option
@client_config_option
def restore_(
    url: str,
    topic: str,
    name: str | None,
    settings: list[tuple[str, str]],
    replication_factor: int,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Make a topic of what the archive at URL has of TOPIC: the same records, headers, times, transactions and settings, at the same offsets.

    The brokers must be pylog's. The topic must be new; when a restore was cut, the same command goes on with it, and nobody else writes to the
    topic until it is whole. It keeps all records: retention.ms and retention.bytes are set only by --config.
    """
    from pylog_spark.archive.restoring import RestoreOptions, restore
    from pylog_spark.archive.store.reading import ArchiveLog
    from pylog_spark.archive.store.restoring import StoredTopicReader

    options = RestoreOptions(name, dict(settings), replication_factor)
    reader = StoredTopicReader(ArchiveLog(url), topic)
    with admin_of(bootstrap, client_config) as admin, _progress("offsets restored") as report:
        made, batches = restore(admin, reader, options, _say, report)
    say(f"Topic {made} is whole: {plural(batches, 'batch', 'batches')} restored.")


@archive.command()
@click.argument("file", metavar="FILE|URL")
@json_option
def verify(file: str, as_json: bool) -> None:
    """Read all of FILE, or of the archive at URL, and look at each checksum. Exit code 1 when it is damaged or not whole."""
    from pylog_spark.archive.checking import verify as verified
    from pylog_spark.archive.lines import is_lines, verify_lines
    from pylog_spark.archive.store.opening import is_archive

    if is_archive(file):
        show_stored(file, (), internal=False, verify=True, as_json=as_json)
        return
    if not os.path.isfile(file):
        raise LogError(
            "INVALID_ARGUMENT", f"{file} is neither a file nor an archive: name one that 'pylog archive' has made."
        )
    beginning, ending = verify_lines(file) if is_lines(file) else verified(file)
    if as_json:
        echo_json({"begin": document(beginning), "end": document(ending)})
        return
    _show(beginning, ending)
    say(f"{file} is whole: {_summary(ending)}", err=True)


@archive.command("list")
@click.argument("url", metavar="URL")
@click.option(
    "--topic", "-t", "topics", multiple=True, metavar="TOPIC", help="Only this topic. Repeatable.  [default: all]"
)
@json_option
def list_(url: str, topics: tuple[str, ...], as_json: bool) -> None:
    """Show the partitions in the archive at URL: where each begins and ends, in how many objects and bytes."""
    from pylog_spark.archive.store.opening import is_archive

    if not is_archive(url):
        raise LogError(
            "INVALID_ARGUMENT", f"{url} is no archive: it has no pylog-archive.json; see 'pylog archive copy'."
        )
    show_stored(url, topics, internal=False, verify=False, as_json=as_json)


@archive.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    help="The archive: a folder, s3://BUCKET/PATH, gs://..., hdfs://...; made if there is none.",
)
@_level_option
@click.option(
    "--segment-bytes", type=click.IntRange(1 << 20), default=64 << 20, show_default=True, help="Bytes of an object."
)
@click.option(
    "--long-range",
    is_flag=True,
    help="Look for what repeats at long distances, in frames of 8 MiB: for large values that are alike.",
)
@click.option("--least-bytes", type=click.IntRange(0), default=0, show_default=True,
              help="Leave a partition with less new than so many bytes for later, so that objects do not become small.")  # fmt: skip
@click.option("--every", type=click.FloatRange(0.1), metavar="SECONDS",
              help="Copy again and again, with so long a pause, until SIGTERM or Ctrl-C; what fails then is said and tried again.")  # fmt: skip
@bootstrap_option
@client_config_option
def copy(
    topics: tuple[str, ...],
    url: str,
    level: int,
    segment_bytes: int,
    long_range: bool,
    least_bytes: int,
    every: float | None,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Copy what is new of each TOPIC into the archive at URL, which Spark reads without brokers: format("pylog").load(URL).

    Records of transactions that are open, and what comes behind them, follow another time: run it again and again. What was copied stays
    in the archive when the topic removes it. Apache Kafka's topics can be copied, too; compacted ones cannot.
    """
    from pylog_spark.archive.store.copying import CopyOptions, copy_topic
    from pylog_spark.archive.store.root import open_archive

    options = CopyOptions(level, segment_bytes, long_range, least_bytes=least_bytes)
    objects = open_archive(url, create=True)
    with admin_of(bootstrap, client_config) as admin:

        def segments(topic: str) -> Iterator[StoredSegment]:
            return (each.segment for each in copy_topic(admin, objects, topic, options, _say))

        for topic in topics:
            say(_copied(topic, list(segments(topic))))
        if every is not None:
            _copy_until_stopped(topics, segments, every)


def _copy_until_stopped(
    topics: Sequence[str], segments: Callable[[str], Iterator[StoredSegment]], every_s: float
) -> None:
    """Copy each topic after each pause, until a signal comes; between two segments it is looked for, too."""
    from pylog_spark.cli.signals import StopSignal

    with StopSignal() as stop:
        while not stop.wait(every_s):
            for topic in topics:
                copied: list[StoredSegment] = []
                try:
                    for segment in segments(topic):
                        copied.append(segment)
                        if stop.wait(0):
                            break
                except (LogError, OSError) as error:
                    _say(f"{topic}: {str(error).rstrip('.')}; this is tried again in {every_s:g} s")
                if copied:
                    say(_copied(topic, copied))
                if stop.wait(0):
                    return


def _copied(topic: str, segments: Sequence[StoredSegment]) -> str:
    records, size = sum(each.records for each in segments), sum(each.size for each in segments)
    return f"{topic}: {plural(records, 'record')} in {plural(len(segments), 'segment')} of {size} bytes."


def _say(line: str) -> None:
    say(f"{line}.", err=True)


@archive.command()
@click.argument("url", metavar="FROM")
@click.argument("copy_url", metavar="TO")
def sync(url: str, copy_url: str) -> None:
    """Bring the archive at TO up to what the archive at FROM has: to move it to another store, or to keep a copy of it there.

    Only what TO does not have is copied, and compared; TO is made if there is none. Brokers may archive to FROM meanwhile. Topics and cuts that are
    gone from FROM stay in TO.
    """
    from pylog_spark.archive.store.root import open_archive
    from pylog_spark.archive.store.syncing import sync as synced

    source = open_archive(url)
    with _progress("bytes compared and copied") as report:
        done = 0

        def add(size: int) -> None:
            nonlocal done
            done += size
            report(done, None)

        rows = [tuple(each) for each in synced(source, open_archive(copy_url, create=True), add)]
    echo_table(["TOPIC", "PARTITION", "START", "END", "COPIED", "BYTES"], rows)


@archive.command()
@click.argument("url", metavar="URL")
@click.option(
    "--topic", "-t", "topics", multiple=True, metavar="TOPIC", help="Only of this topic. Repeatable.  [default: all]"
)
@time_option(
    "--before", meaning="Remove segments with older records only. Without it only what killed copies have left goes."
)
def prune(url: str, topics: tuple[str, ...], before: int | None) -> None:
    """Remove what is old from the archive at URL, and what copies that were killed have left in it.

    Each partition keeps its last segment. Who reads what is removed gets an error.
    """
    from pylog_spark.archive.store.pruning import prune as pruned
    from pylog_spark.archive.store.reading import ArchiveLog
    from pylog_spark.archive.store.root import open_archive

    found = ArchiveLog(url)
    rows: list[tuple[object, ...]] = []
    for topic in found.stored_topics(topics or None):
        rows += map(tuple, pruned(open_archive(url), topic.topic, topic.topic_id, topic.partitions, before))
    echo_table(["TOPIC", "PARTITION", "START", "SEGMENTS", "BYTES", "UNNAMED"], rows)


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
def _progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on a terminal; nothing where there is none."""
    if not sys.stderr.isatty():
        yield lambda _done, _whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, whole: shown.update(task, completed=done, total=whole)
