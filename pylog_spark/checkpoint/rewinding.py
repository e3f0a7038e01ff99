"""Changing a checkpoint, of a query that is stopped: the next batch begins at other offsets, or later batches have never been.

Two ways, because two things count batches. `moved` changes where the next batch begins; numbers of batches go on, so that no sink takes a new
batch for one that it has, and state stays as it is. `back_to` forgets all batches behind one, with the state that they left: the query
computes what it computed, and a sink that writes exactly once skips what it has.

A `Change` is a list of steps. One that was interrupted is completed by doing it again; until then Spark misses state, and says so, or runs
a batch again that was not finished. What a step replaces or removes is kept in a folder of the checkpoint, from where it can be copied back.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pylog_spark.checkpoint.files import CheckpointFiles
from pylog_spark.checkpoint.query import COMMITS, METADATA, OFFSETS, STATE, Checkpoint
from pylog_spark.client.errors import LogError
from pylog_spark.offsets import Offsets

#: Begins the names of the folders in which is what changes have replaced.
BACKUP = "pylog-backup-"
#: A query whose files are younger than this many seconds may be running.
QUIET_S = 60
# The version in the name of a file of state: of HDFSBackedStateStoreProvider and RocksDBStateStoreProvider, with a unique id or without.
_OF_VERSION = re.compile(r"(?:.*/)?(\d+)(?:_[^/.]+)?\.(?:delta|snapshot|zip|changelog)")


@dataclass(frozen=True)
class Step:
    """One file gets this content; without content it is taken away."""

    name: str
    content: bytes | None


@dataclass(frozen=True)
class Change:
    """What is to be done, in this order."""

    steps: tuple[Step, ...]

    def apply(self, files: CheckpointFiles) -> str:
        """Do it; the folder in which is what was there before, relative to the checkpoint."""
        backup = f"{BACKUP}{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        for step in self.steps:
            if step.content is None:
                files.move(step.name, f"{backup}/{step.name}")
                continue
            if step.name.rpartition("/")[2] in files.names(step.name.rpartition("/")[0]):
                files.write(f"{backup}/{step.name}", files.read(step.name))
            files.write(step.name, step.content)
        return backup


def refuse_running(files: CheckpointFiles, now_s: float) -> None:
    """Refuse a query that has just written: it may be running. One that waits for records looks like one that is stopped.

    Raises
    ------
    LogError
        With how long ago it wrote.
    """
    newest_s = max(files.newest_s(OFFSETS), files.newest_s(COMMITS))
    if now_s - newest_s < QUIET_S:
        raise LogError(
            "QUERY_MAY_RUN",
            f"The query of {files.location} wrote its checkpoint {max(now_s - newest_s, 0):.0f} s ago and may be running: stop it, and say so with "
            "--stopped.",
        )


def moved(checkpoint: Checkpoint, offsets: Mapping[str, Offsets]) -> Change:
    """Have the next batch begin at these offsets, by source; all other partitions go on where they are.

    Raises
    ------
    LogError
        When a batch of a query with state is not finished, or none is.
    """
    last, unfinished = checkpoint.last, checkpoint.unfinished
    begins = checkpoint.entry(last).moved(offsets)
    if unfinished is None:
        return Change((Step(f"{OFFSETS}/{last}", begins.text().encode()),))
    if checkpoint.is_stateful:
        raise LogError(
            "INVALID_CHECKPOINT",
            f"Batch {unfinished} is planned and not finished, and the query has state, which would lack it: start the query until the batch is "
            f"finished, or go back to batch {last} with --to-batch.",
        )
    # It ends where the next one is to begin. Its number is used up: a sink may have its rows.
    ended = checkpoint.files.read(f"{COMMITS}/{last}")
    return Change((Step(f"{OFFSETS}/{unfinished}", begins.text().encode()), Step(f"{COMMITS}/{unfinished}", ended)))


def back_to(checkpoint: Checkpoint, batch: int) -> Change:
    """Forget all that came after a batch: its state, then the batches, newest first, of each one first that it was finished.

    Raises
    ------
    LogError
        When the batch is not there or not finished.
    """
    checkpoint.entry(batch)
    if batch not in checkpoint.finished:
        raise LogError(
            "INVALID_ARGUMENT", f"Batch {batch} is not finished; the last one that is has the number {checkpoint.last}."
        )
    names = []
    for number in sorted({*checkpoint.planned, *checkpoint.finished}, reverse=True):
        if number > batch:
            there = ((COMMITS, checkpoint.finished), (OFFSETS, checkpoint.planned))
            names += [f"{folder}/{number}" for folder, numbers in there if number in numbers]
    # State first: were it there, and its batch not, a query that goes on could take it for what it is about to compute.
    return Change(tuple(Step(name, None) for name in (*_state_after(checkpoint.files, batch + 1), *names)))


def fork(files: CheckpointFiles, to: CheckpointFiles) -> str:
    """Copy a checkpoint into an empty folder, for another query: the new query's id.

    Raises
    ------
    LogError
        When there is something already.
    """
    if to.names(""):
        raise LogError("INVALID_ARGUMENT", f"{to.location} is not empty: give a folder that does not exist yet.")
    query_id = str(uuid.uuid4())
    for name in files.all_files():
        if not name.startswith(BACKUP) and not name.endswith((".crc", ".tmp")) and name != METADATA:
            to.write(name, files.read(name))
    # Last: without it the folder is no checkpoint.
    to.write(METADATA, json.dumps({"id": query_id}, separators=(",", ":")).encode())
    return query_id


def _state_after(files: CheckpointFiles, version: int) -> Iterator[str]:
    """Files of state of later versions. A snapshot of one that is left would be taken for one of the same number that comes."""
    for name in files.all_files(STATE):
        found = _OF_VERSION.fullmatch(name)
        if found and int(found[1]) > version:
            yield name
