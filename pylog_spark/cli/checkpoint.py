"""``pylog checkpoint show | lag | rewind | fork``: where a streaming query is, how far behind, and where it goes on. Changes are only
shown until --execute is given."""

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import click

from pylog_spark.checkpoint.files import CheckpointFiles
from pylog_spark.checkpoint.lag import PartitionLag, lag_of
from pylog_spark.checkpoint.query import Checkpoint
from pylog_spark.checkpoint.rewinding import Change, back_to, fork, moved, refuse_running
from pylog_spark.cli.common import (
    admin_of,
    bootstrap_option,
    client_config_option,
    client_settings,
    document,
    echo_json,
    echo_table,
    execute_option,
    json_option,
    plural,
    say,
)
from pylog_spark.cli.reset import expanded, moves_of, reset_options, scenario_of, selection_of
from pylog_spark.client.errors import LogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.position import Position

_SOURCE = click.option(
    "--source",
    "source",
    metavar="NAME",
    help="Only this source of the query: its name, or its number as 'pylog checkpoint show' has it.",
)
_STOPPED = click.option(
    "--stopped", is_flag=True, help="The query is stopped, although its checkpoint is younger than a minute."
)


@click.group()
def checkpoint() -> None:
    """Look at the checkpoint of a streaming query, move where it goes on, copy it for another query.

    DIR is the query's checkpointLocation: a local folder or a URL such as s3://bucket/folder. Sources that read with pylog and those of Spark's
    Kafka connector are understood.
    """


@checkpoint.command(epilog="Example: pylog checkpoint show ./checkpoint")
@click.argument("directory", metavar="DIR")
@json_option
def show(directory: str, as_json: bool) -> None:
    """Show the batches of a query and the offsets of its sources."""
    found = Checkpoint(CheckpointFiles(directory))
    shown = _described(found)
    if as_json:
        echo_json(shown)
        return
    say(f"Query {shown['query_id']}, {'with' if shown['stateful'] else 'without'} state")
    finished = "none" if shown["finished_batch"] is None else shown["finished_batch"]
    say(f"Batches {found.planned[0]} to {found.planned[-1]} are kept, the last finished one is {finished}")
    if shown["unfinished_batch"] is not None:
        say(f"Batch {shown['unfinished_batch']} is planned and not finished: the query runs it again when it starts")
    say(f"Planned {_time(shown['planned_ms'])}, watermark {_time(shown['watermark_ms'])}")
    rows = [
        [row[key] for key in ("source", "topic", "partition", "start", "end", "records")] for row in shown["offsets"]
    ]
    if rows:
        say(f"Batch {found.planned[-1]} by partition:")
        echo_table(["SOURCE", "TOPIC", "PARTITION", "START", "END", "OFFSETS"], [_dashed(row) for row in rows])
    for name, offset in shown["other_sources"].items():
        say(f"Source {name} reads something else: {offset or 'no offset yet'}")


@checkpoint.command(epilog="Example: pylog checkpoint lag ./checkpoint -b 127.0.0.1:9092")
@click.argument("directory", metavar="DIR")
@_SOURCE
@bootstrap_option
@client_config_option
@json_option
def lag(
    directory: str, source: str | None, bootstrap: str, client_config: list[tuple[str, str]], as_json: bool
) -> None:
    """Show how far a query is behind, in records, bytes and seconds.

    Counted from the last batch that is finished. Bytes are estimated from the first batch that is not read; seconds are the age of the first
    record that is not read.
    """
    found = Checkpoint(CheckpointFiles(directory))
    positions = _chosen(found.entry(found.last).positions(), source, directory)
    config, now_ms = client_settings(bootstrap, client_config), time.time_ns() // 1_000_000
    lags = {name: lag_of(config, position, now_ms) for name, position in positions.items()}
    if as_json:
        rows = [{"source": name, **document(each)} for name, of_source in lags.items() for each in of_source]
        echo_json({"query_id": found.query_id, "batch": found.last, "partitions": rows})
        return
    heads = ["SOURCE", "TOPIC", "PARTITION", "OFFSET", "END", "LAG", "BYTES", "SECONDS"]
    echo_table(heads, [_dashed([name, *_shown(each)]) for name, of_source in lags.items() for each in of_source])
    total = sum(each.lag or 0 for of_source in lags.values() for each in of_source)
    say(f"Behind by {plural(total, 'record')} at the end of batch {found.last}.", err=True)
    for each in (each for of_source in lags.values() for each in of_source if each.missing):
        say(f"{each.topic}-{each.partition}: {each.missing}.", err=True)


@checkpoint.command(epilog="""\b
Examples:
  pylog checkpoint rewind ./checkpoint --to-datetime 2026-01-31T12:00
  pylog checkpoint rewind ./checkpoint --topic events:0,3 --shift-by -100 --execute
  pylog checkpoint rewind ./checkpoint --to-batch 41 --execute

With a position the next batch begins there. Its number is the next one, so no sink takes it for a batch that it
has; the state of aggregations and joins stays, and counts what is read again twice.

With --to-batch the query is as it was after that batch, state included. It numbers its batches from there on
again: a sink that writes exactly once skips those that it has.

Stop the query first. What is replaced is kept in a folder of the checkpoint.
""")  # fmt: skip
@click.argument("directory", metavar="DIR")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:0,1]", help="Only these partitions. Repeatable.")
@_SOURCE
@reset_options
@click.option("--to-batch", type=click.IntRange(0), metavar="N", help="As it was after batch N, with its state.")
@_STOPPED
@execute_option
@bootstrap_option
@client_config_option
@json_option
def rewind(
    directory: str,
    topics: tuple[str, ...],
    source: str | None,
    to_batch: int | None,
    stopped: bool,
    execute: bool,
    bootstrap: str,
    client_config: list[tuple[str, str]],
    as_json: bool,
    **ways: Any,
) -> None:
    """Have a query that is stopped go on from another place, further back or ahead."""
    files = CheckpointFiles(directory)
    found = Checkpoint(files)
    if to_batch is None:
        moves = _moves(found, (topics, source), (bootstrap, client_config), ways)
        change = moved(found, _by_source(moves))
    else:
        if topics or source or any(value not in (None, False) for value in ways.values()):
            raise click.UsageError("--to-batch stands alone: it takes all sources back, with the query's state.")
        change, moves = back_to(found, to_batch), _moves_to(found, to_batch)
    if execute and not stopped:
        refuse_running(files, time.time())
    backup = change.apply(files) if execute else None
    if as_json:
        echo_json({"query_id": found.query_id, "executed": execute, "backup": backup, "offsets": moves})
        return
    rows = [[row[key] for key in ("source", "topic", "partition", "offset", "new_offset")] for row in moves]
    echo_table(["SOURCE", "TOPIC", "PARTITION", "OFFSET", "NEW-OFFSET"], [_dashed(row) for row in rows])
    for sentence in _means(found, to_batch, change):
        say(sentence, err=True)
    done = (
        f"What was there before is in {files.location}/{backup}."
        if execute
        else "Nothing is changed without --execute."
    )
    say(done, err=True)


@checkpoint.command("fork", epilog="Example: pylog checkpoint fork ./checkpoint ./checkpoint-of-the-copy")
@click.argument("directory", metavar="DIR")
@click.argument("to", metavar="NEW-DIR")
@_STOPPED
@json_option
def fork_(directory: str, to: str, stopped: bool, as_json: bool) -> None:
    """Copy a checkpoint into a new folder, for another query that goes on where this one is.

    The copy has an id of its own, so that a sink does not take the two for one; both write what comes after. State is copied, too.
    """
    files = CheckpointFiles(directory)
    found = Checkpoint(files)
    if not stopped:
        refuse_running(files, time.time())
    query_id = fork(files, CheckpointFiles(to))
    if as_json:
        echo_json({"query_id": query_id, "forked_from": found.query_id, "batch": found.planned[-1]})
    else:
        say(f"{to} is the checkpoint of query {query_id}, which goes on after batch {found.planned[-1]}.", err=True)


def _described(found: Checkpoint) -> dict[str, Any]:
    number = found.planned[-1]
    entry = found.entry(number)
    before = found.entry(number - 1).positions() if number - 1 in found.planned else {}
    positions = entry.positions()
    offsets = []
    for name, position in positions.items():
        starts: Offsets = before[name].offsets if name in before else {}
        for partition, end in sorted(position.offsets.items()):
            start = starts.get(partition)
            offsets.append({
                "source": name, "topic": partition.topic, "partition": partition.partition, "start": start, "end": end,
                "records": None if start is None else end - start,
            })  # fmt: skip
    return {
        "query_id": found.query_id,
        "stateful": found.is_stateful,
        "finished_batch": found.finished[-1] if found.finished else None,
        "unfinished_batch": found.unfinished,
        "planned_ms": entry.timestamp_ms,
        "watermark_ms": entry.watermark_ms or None,
        "offsets": offsets,
        "other_sources": {name: offset for name, offset in entry.sources.items() if name not in positions},
    }


def _chosen(positions: Mapping[str, Position], source: str | None, directory: str) -> dict[str, Position]:
    chosen = {name: position for name, position in positions.items() if source in (None, name)}
    if not chosen:
        what = "No source" if source is None else f"No source {source!r}"
        sentence = f"{what} of {directory} reads a log: 'pylog checkpoint show {directory}' shows its sources."
        raise LogError("INVALID_ARGUMENT", sentence)
    return chosen


def _moves(
    found: Checkpoint,
    which: tuple[tuple[str, ...], str | None],
    cluster: tuple[str, list[tuple[str, str]]],
    ways: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Where the partitions that are selected go on; by source."""
    topics, source = which
    scenario, wanted = scenario_of(ways), selection_of(topics)
    positions = _chosen(found.entry(found.last).positions(), source, found.files.location)
    moves = []
    with admin_of(*cluster) as admin:
        selected = set(expanded(admin, wanted)) if wanted else None
        for name, position in positions.items():
            current = {(topic, partition): offset for (topic, partition), offset in sorted(position.offsets.items())}
            partitions = [partition for partition in current if selected is None or partition in selected]
            moves += [{"source": name, **move} for move in moves_of(admin, partitions, current, scenario)]
    if not moves:
        raise LogError(
            "INVALID_ARGUMENT",
            f"No source of {found.files.location} reads {', '.join(topics) or 'what is still there'}.",
        )
    return moves


def _moves_to(found: Checkpoint, batch: int) -> list[dict[str, Any]]:
    new = found.entry(batch).positions()
    return [
        {
            "source": name,
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": offset,
            "new_offset": new[name].offsets.get(partition) if name in new else None,
        }
        for name, position in found.entry(found.last).positions().items()
        for partition, offset in sorted(position.offsets.items())
    ]


def _by_source(moves: list[dict[str, Any]]) -> dict[str, Offsets]:
    by_source: dict[str, Offsets] = {}
    for move in moves:
        of_source = by_source.setdefault(move["source"], {})
        of_source[TopicPartition(move["topic"], move["partition"])] = move["new_offset"]
    return by_source


def _means(found: Checkpoint, to_batch: int | None, change: Change) -> list[str]:
    """What the change means for state and sinks."""
    if to_batch is not None:
        later = [number for number in found.planned if number > to_batch]
        if not later:
            return [f"Batch {to_batch} is the last one: there is nothing to go back over."]
        state = sum(step.name.startswith("state/") for step in change.steps)
        return [
            f"Batches {later[0]} to {later[-1]} are forgotten"
            + (f", with {plural(state, 'file')} of state." if state else "."),
            "They come again with the same numbers: a sink that writes exactly once skips those that it has.",
        ]
    means = []
    if found.is_stateful:
        watermark = found.entry(found.last).watermark_ms
        late = f" Where there is a watermark ({_time(watermark)}), older records are dropped." if watermark else ""
        means.append(
            f"The state stays as it is: what is read again counts twice, what is passed over does not count.{late}"
        )
    if found.unfinished is not None:
        means.append(
            f"Batch {found.unfinished}, which is not finished, is not run again; a sink may have some of its rows."
        )
    return means


def _shown(each: PartitionLag) -> list[object]:
    seconds = None if each.behind_ms is None else each.behind_ms // 1000
    return [each.topic, each.partition, each.offset, each.end_offset, each.lag, each.lag_bytes, seconds]


def _dashed(row: list[object]) -> list[object]:
    return ["-" if cell is None else cell for cell in row]


def _time(moment_ms: int | None) -> str:
    if not moment_ms:
        return "-"
    return datetime.fromtimestamp(moment_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
