"""What Spark says of a finished batch: the JSON of a `StreamingQueryProgress`, as values. Pure functions.

Spark leaves out what it does not know, and later versions may add to it: what is missing is None or empty, what is unknown is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pylog_spark.offsets import Offsets
from pylog_spark.offsets.position import Position, PositionError


@dataclass(frozen=True)
class SourceProgress:
    """One source in one batch.

    Attributes
    ----------
    rows : int
        Rows that the batch read from it.
    start, end : Position or None
        Where the batch began and ended; None of a source that reads no log, and `start` of a query's first batch.
    latest : Position or None
        The end of the log when the batch was planned: the high watermark of pylog's sources (before Spark 4.2 the end of what the query
        can read).
    """

    rows: int
    start: Position | None
    end: Position | None
    latest: Position | None

    def lag(self) -> Offsets:
        """How many offsets are between the end of the batch and that of the log, by partition."""
        if self.end is None or self.latest is None:
            return {}
        latest = self.latest.offsets
        return {each: max(latest[each] - at, 0) for each, at in self.end.offsets.items() if each in latest}


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query.

    Attributes
    ----------
    query : str
        The query's name; its id when it has none.
    query_id, run_id : str
        The ids that the query has for ever, and since this start.
    batch_id : int
        The number of the batch.
    input_rate, processed_rate : float or None
        Rows per second that arrived, and that were processed.
    parts_ms : dict of str to int
        Milliseconds of the parts of the batch by Spark's names, ``triggerExecution`` for all of it.
    state_rows : dict of str to int
        Rows of state of each operator, by its number and Spark's name.
    sources : tuple of SourceProgress
        All sources in the query's order.
    """

    query: str
    query_id: str
    run_id: str
    batch_id: int
    input_rate: float | None
    processed_rate: float | None
    parts_ms: Mapping[str, int]
    state_rows: Mapping[str, int]
    sources: tuple[SourceProgress, ...]

    @classmethod
    def of_json(cls, text: str) -> BatchProgress:
        """Read the JSON of a `StreamingQueryProgress`."""
        document = json.loads(text)
        query_id = str(document["id"])
        operators = document.get("stateOperators") or []
        return cls(
            query=document.get("name") or query_id,
            query_id=query_id,
            run_id=str(document["runId"]),
            batch_id=int(document["batchId"]),
            input_rate=document.get("inputRowsPerSecond"),
            processed_rate=document.get("processedRowsPerSecond"),
            parts_ms=dict(document.get("durationMs") or {}),
            state_rows={
                f"{number} {each.get('operatorName', '')}".strip(): int(each.get("numRowsTotal") or 0)
                for number, each in enumerate(operators)
            },
            sources=tuple(_source(each) for each in document.get("sources") or []),
        )


def _source(document: Mapping[str, Any]) -> SourceProgress:
    start, end, latest = (_position(document.get(name)) for name in ("startOffset", "endOffset", "latestOffset"))
    return SourceProgress(int(document.get("numInputRows") or 0), start, end, latest)


def _position(offset: object) -> Position | None:
    # A source without a topic could be of any kind.
    if not isinstance(offset, dict) or not offset:
        return None
    try:
        return Position.from_document(offset)
    except PositionError:
        return None
