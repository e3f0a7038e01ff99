"""``pylog cut``: ranges of a topic under a name, in an archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    document,
    echo_json,
    echo_table,
    json_option,
    say,
    since_option,
    time_option,
)

if TYPE_CHECKING:
    from pylog_spark.archive.store.cuts import Cut
    from pylog_spark.archive.store.objects import Objects
    from pylog_spark.archive.store.reading import ArchiveLog

_EPILOG = """\b
Examples:
  pylog cut create q3 --topic orders --archive ./history --until 2026-10-01
  pylog cut create some -t orders -a ./history --offsets '{"0": [250, 500]}'
  pylog cut list --archive ./history
  pylog cut verify q3 --archive ./history
"""

_archive_option = click.option(
    "--archive",
    "-a",
    "url",
    required=True,
    metavar="URL",
    help="The archive: a folder, s3://BUCKET/PATH, gs://..., hdfs://...",
)

Ranges = dict[int, tuple[int, int]]


def _ranges(_context: click.Context, _option: click.Parameter, text: str | None) -> Ranges | None:
    """``{"PARTITION": [START, END]}`` (a click callback)."""
    if text is None:
        return None
    wanted = 'It is a JSON object such as {"0": [250, 500]}: for each partition its first offset and the one behind its last.'
    try:
        found = json.loads(text)
        ranges = {int(number): (start, end) for number, (start, end) in found.items()}
    except (ValueError, TypeError, AttributeError):
        raise click.BadParameter(wanted) from None
    whole = all(type(at) is int for bounds in ranges.values() for at in bounds)
    if not ranges or not whole or not all(number >= 0 and 0 <= start <= end for number, (start, end) in ranges.items()):
        raise click.BadParameter(wanted)
    return ranges


@click.group(epilog=_EPILOG)
def cut() -> None:
    """Keep ranges of a topic in an archive under a name, against all pruning, and read them bit for bit, years later.

    Spark reads one by format("pylog").option("cut", NAME).load(URL).
    """


@cut.command()
@click.argument("name")
@click.option("--topic", "-t", required=True, metavar="TOPIC", help="The topic.")
@_archive_option
@since_option
@time_option("--until", "--at", "until", meaning="End before the first record of this time: the topic as it was then.")
@click.option(
    "--offsets",
    metavar="JSON",
    callback=_ranges,
    help="Instead of times: of each partition its first offset and the one behind its last, '{\"0\": [250, 500]}'.",
)
@bootstrap_option
@client_config_option
def create(
    name: str,
    topic: str,
    url: str,
    since: int | None,
    until: int | None,
    offsets: Ranges | None,
    bootstrap: str,
    client_config: list[tuple[str, str]],
) -> None:
    """Make the cut NAME of TOPIC: all that it has now, or a part by time or offsets.

    What is not in the archive yet is copied first. Of a compacted topic the cut has a copy of its own.
    """
    if offsets is not None and (since, until) != (None, None):
        raise click.UsageError("Give --offsets, or --since and --until.")
    from pylog_spark.archive.store.copying import CopyOptions, copy_topic
    from pylog_spark.archive.store.cuts import own_archive
    from pylog_spark.archive.store.cutting import create_cut
    from pylog_spark.archive.store.reading import ArchiveLog
    from pylog_spark.archive.store.root import open_archive

    objects = open_archive(url, create=True)
    with admin_of(bootstrap, client_config) as admin:
        (described,) = admin.configs("topic", [topic])
        policy = next((each.value or "" for each in described.configs if each.name == "cleanup.policy"), "")
        is_own = "compact" in policy
        into = own_archive(objects, name, create=True) if is_own else objects
        for _ in copy_topic(admin, into, topic, CopyOptions(is_cut=True), lambda line: say(f"{line}.", err=True)):
            pass
    log = ArchiveLog(url, objects=into)
    numbers = range(log.stored_topics([topic])[0].partitions)
    if offsets is not None and (unknown := sorted(offsets.keys() - set(numbers))):
        raise click.BadParameter(f"Topic {topic} has no partition {unknown[0]}.", param_hint="--offsets")
    ranges = offsets or {number: _range(log, topic, number, since, until) for number in numbers}
    made = create_cut(objects, log, name, topic, ranges, is_own=is_own)
    say(
        f"Cut {name}: {sum(end - start for _, start, end in made.ranges)} offsets of topic {topic}, SHA-256 {made.sha256}."
    )


def _range(log: ArchiveLog, topic: str, partition: int, since: int | None, until: int | None) -> tuple[int, int]:
    marks = [(topic, partition, -2), (topic, partition, -1)]
    marks += [(topic, partition, time) for time in (since, until) if time is not None]
    found = [offset for _, _, offset, _ in log.list_offsets(marks)]
    first, last = found[:2]
    if since is not None:
        first = found[2] if found[2] >= 0 else last
    if until is not None and found[-1] >= 0:
        last = found[-1]
    return min(first, last), last


@cut.command("list")
@_archive_option
@json_option
def list_(url: str, as_json: bool) -> None:
    """List the cuts of an archive."""
    from pylog_spark.archive.store.cuts import all_cuts
    from pylog_spark.archive.store.root import open_archive

    found = [*all_cuts(open_archive(url))]
    if as_json:
        echo_json([document(each) for each in found])
        return
    rows = [
        (each.name, each.topic, len(each.ranges), sum(end - start for _, start, end in each.ranges), each.sha256)
        for each in found
    ]
    echo_table(["CUT", "TOPIC", "PARTITIONS", "OFFSETS", "SHA-256"], rows)


@cut.command()
@click.argument("name")
@_archive_option
def verify(name: str, url: str) -> None:
    """Read all of the cut NAME, and compare its hash with what it was. Exit code 1 when it is another."""
    from pylog_spark.archive.store.cutting import verify_cut
    from pylog_spark.archive.store.reading import ArchiveLog

    found = _found(url, name)[1]
    verify_cut(ArchiveLog(url, cut=name), found)
    say(f"Cut {name} is what it was: SHA-256 {found.sha256}.")


@cut.command()
@click.argument("name")
@_archive_option
def delete(name: str, url: str) -> None:
    """Forget the cut NAME, so that what only it needs may be pruned."""
    from pylog_spark.archive.store.cutting import delete_cut

    delete_cut(*_found(url, name))
    say(f"Deleted cut {name}.")


def _found(url: str, name: str) -> tuple[Objects, Cut]:
    from pylog_spark.archive.store.cuts import read_cut
    from pylog_spark.archive.store.root import open_archive

    objects = open_archive(url)
    return objects, read_cut(objects, name)
