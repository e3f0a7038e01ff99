"""What stands in a commit, and a table's state from its commits. Pure.

    <table>/_pylog/commits/00000000000000000007.json

    {"version": 1, "id": "...", "position": {...}, "table": {...}, "add": {"date=2026-01-01/x.parquet": 8123}, "remove": [...], "whole": false}

`position` is what Spark's checkpoint holds of a query: the offset of the next record of each partition, and the topics' ids. Every
`WHOLE_EVERY`-th commit names all files of the table (``"whole": true``), so that few have to be read to know its state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.lakehouse.spec import TableSpec
from pylog_spark.offsets.position import Position

FORMAT_VERSION = 1
#: How many commits there are at most from one that names all files to the next.
WHOLE_EVERY = 20
#: So many small files of a like size in one folder are merged by who loads.
MANY = 16
#: A file that is as large is not merged any more.
TARGET_BYTES = 128 << 20
_DIGITS = 20
_SUFFIX = ".json"


@dataclass(frozen=True)
class State:
    """A table after one of its commits.

    Attributes
    ----------
    number : int
        The number of the commit; -1 when there is none.
    position : Position
        Up to where its rows go.
    files : dict of str to int
        Size of each file, by its path below the table.
    spec : TableSpec or None
        How its rows were made; None when there is no commit.
    snapshot : int or None
        What the table's format itself calls this state, where it has a name for it.
    """

    number: int = -1
    position: Position = field(default_factory=lambda: Position({}))
    files: Mapping[str, int] = field(default_factory=dict)
    spec: TableSpec | None = None
    snapshot: int | None = None

    def after(self, text: str) -> State:
        """Give the state after one more commit.

        Raises
        ------
        PylogError
            As `known`.
        """
        document = known(text)
        before = {} if document["whole"] else self.files
        removed = set(document["remove"])
        files = {name: size for name, size in before.items() if name not in removed} | document["add"]
        position = Position.from_document(document["position"])
        return State(self.number + 1, position, files, TableSpec.from_document(document["table"]))


def known(text: str) -> dict[str, Any]:
    """Give the document of a commit.

    Raises
    ------
    PylogError
        ``PYLOG_TABLE_STATE`` when the commit is of a later version of pylog.
    """
    document: dict[str, Any] = json.loads(text)
    if document["version"] > FORMAT_VERSION:
        raise PylogError(
            "PYLOG_TABLE_STATE",
            f"The table was written by a later pylog (commits of version {document['version']}, this one knows {FORMAT_VERSION}); "
            "upgrade pylog-spark.",
        )
    return document


def head(commit_id: str, position: Position, spec: TableSpec) -> dict[str, Any]:
    """Give what stands in a commit whatever the table's format."""
    return {
        "version": FORMAT_VERSION,
        "id": commit_id,
        "position": position.to_document(),
        "table": spec.to_document(),
    }


def commit_text(
    before: State,
    commit_id: str,
    position: Position,
    spec: TableSpec,
    add: Mapping[str, int],
    remove: Iterable[str] = (),
) -> str:
    """Give the text of the commit that comes after `before`."""
    gone = set(remove)
    whole = (before.number + 1) % WHOLE_EVERY == 0
    kept = {name: size for name, size in before.files.items() if name not in gone} if whole else {}
    document = {
        **head(commit_id, position, spec),
        "add": {**kept, **add},
        "remove": [] if whole else sorted(gone),
        "whole": whole,
    }
    return json.dumps(document)


def commit_name(number: int) -> str:
    """The name of a commit's file."""
    return f"{number:0{_DIGITS}d}{_SUFFIX}"


def numbers(names: Iterable[str]) -> list[int]:
    """The numbers of the commits among the names of a folder's files, from the first to the last."""
    stems = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def first_needed(last: int) -> int:
    """The commit that names all files, from which on commits have to be read to know the table after `last`."""
    return last - last % WHOLE_EVERY


def alike_and_many(files: Mapping[str, int], target: int, many: int = MANY) -> list[list[str]]:
    """Give groups of files that are to become one each: `many` small ones or more, of a like size, in one folder.

    Files of the same power of four are alike, so a row is written again only when there is more than `many` times as much: a few times in
    all until a file has the size of `target`.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for name, size in sorted(files.items()):
        if size < target:
            groups.setdefault((name.rpartition("/")[0], size.bit_length() // 2), []).append(name)
    return [group for group in groups.values() if len(group) >= many]


def all_small(files: Mapping[str, int], target: int) -> list[list[str]]:
    """Give groups of files that are to become one each, so that no folder has two small ones that would fit into one of size `target`,
    taken in their order."""
    groups: list[list[str]] = []
    folder, room = None, 0
    for name, size in sorted(files.items()):
        if size >= target:
            continue
        if name.rpartition("/")[0] != folder or size > room:
            folder, room = name.rpartition("/")[0], target
            groups.append([])
        groups[-1].append(name)
        room -= size
    return [group for group in groups if len(group) > 1]


def furthest(one: Position, other: Position) -> Position:
    """Give the position of who has read as far as both."""
    offsets = {
        partition: max(
            found for found in (one.offsets.get(partition), other.offsets.get(partition)) if found is not None
        )
        for partition in {*one.offsets, *other.offsets}
    }
    return Position(offsets, {**one.topic_ids, **other.topic_ids})


def check_follows(table: Position, start: Position | None, end: Position) -> None:
    """Check that a micro-batch from `start` to `end` leaves no record out of the table. `start` is None for a query's first one.

    Raises
    ------
    PylogError
        ``PYLOG_TOPIC_RECREATED`` or ``PYLOG_TABLE_STATE``.
    """
    recreated = sorted(table.recreated(end))
    if recreated:
        raise PylogError(
            "PYLOG_TOPIC_RECREATED",
            f"The topic {recreated[0]} is not the one that the table was loaded from: it was deleted and created again; load into "
            "another table.",
        )
    for partition, offset in sorted((start.offsets if start else {}).items()):
        reached = table.offsets.get(partition)
        if reached is not None and offset > reached:
            raise PylogError(
                "PYLOG_TABLE_STATE",
                f"The checkpoint is ahead of the table: partition {partition.partition} of {partition.topic} goes on at {offset}, and "
                f"the table ends at {reached}; remove the checkpoint, and the next start begins where the table ends.",
            )
