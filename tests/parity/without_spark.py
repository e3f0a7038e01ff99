"""A streaming read of pylog without Spark's engine, on a checkpoint as Spark writes it, so that Spark can go on from it and the other
way round. In `make test`, where the connector's answers are recorded, it stands for Trigger.AvailableNow; `compare` says when.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.utils import to_str

from pylog_spark.datasource import PylogDataSource
from tests.reading.streams import Checkpoint, Stream

#: A batch: its number, the rows that the query kept, its end.
Kept = tuple[int, list[tuple[Any, ...]], dict[str, Any]]


def available_now(folder: Path, columns: Sequence[str], options: Mapping[str, Any]) -> list[Kept]:
    """Read to the end of what is there, from where the checkpoint in `folder` says: the batches that were planned."""
    source = PylogDataSource({name: str(to_str(value)) for name, value in options.items()})
    known = load(folder)
    planned = len(known.offsets)
    query = Stream(source, known)
    try:
        query.available_now()
    finally:
        _store(folder, known)
    ends = [json.loads(text) for text in known.offsets]
    return [(number, _rows(query.batches[number], columns), ends[number]) for number in range(planned, len(ends))]


def _rows(rows: Sequence[Any], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    in_order = sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))
    return [tuple(getattr(row, column) for column in columns) for row in in_order]


def load(folder: Path) -> Checkpoint:
    """What Spark, or this, has written down."""

    def entries(log: str) -> list[Path]:
        return sorted(
            (path for path in (folder / log).glob("*") if path.name.isdecimal()), key=lambda path: int(path.name)
        )

    offsets = [path.read_text().splitlines()[2] for path in entries("offsets")]
    return Checkpoint(offsets, len(entries("commits")))


def _store(folder: Path, known: Checkpoint) -> None:
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "commits").mkdir(exist_ok=True)
    if not (folder / "metadata").exists():
        (folder / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    for number, end in enumerate(known.offsets):
        if not (path := folder / "offsets" / str(number)).exists():
            path.write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":0}}\n{end}')
    for number in range(known.committed):
        if not (path := folder / "commits" / str(number)).exists():
            path.write_text('v1\n{"nextBatchWatermarkMs":0}')
