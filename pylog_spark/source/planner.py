"""What a streaming query reads next, decided on positions. Asks a `Log`, knows no Spark.

A position that the brokers no longer agree with (topic gone or recreated, log shorter than what was read) is reported
through `report_loss` once, and with failOnDataLoss=false the query goes on: gone partitions are dropped, recreated topics
begin at their earliest offset. A partition that is new to the query begins at its earliest offset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import Limit, Specific
from pylog_spark.offsets.position import Position, PositionError
from pylog_spark.offsets.ranges import OffsetRange, plan
from pylog_spark.offsets.ratelimit import new_offsets, rate_limit, waits_for_more
from pylog_spark.options import ReadOptions
from pylog_spark.source.log import Log
from pylog_spark.source.loss import report_loss


class StreamPlanner:
    """The driver's side of one streaming query.

    Parameters
    ----------
    options : ReadOptions
        Of the query.
    log : Log
        Where the partitions are.
    monotonic_s : callable
        The clock for `maxTriggerDelay`, in seconds.
    """

    def __init__(self, options: ReadOptions, log: Log, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._log = log
        self._monotonic_s = monotonic_s
        self._frozen: Position | None = None
        self._latest: Position | None = None
        self._last_batch_s: float | None = None

    def initial(self) -> dict[str, Any]:
        """Give the position at which a new query starts."""
        assigned = self._log.assigned()
        options = self._options
        offsets = self._log.resolve(options.start, options.start_option, assigned.offsets)
        offsets = check_in_log(self._log, offsets, options.start, options.start_option, options.fail_on_data_loss)
        return Position(offsets, assigned.topic_ids).to_document()

    def freeze(self) -> None:
        """Take the present end as the end of the query (Trigger.AvailableNow)."""
        self._frozen = self._now()

    def latest(self, start: Mapping[str, Any], limit: int | None, may_wait: bool) -> dict[str, Any]:
        """Give the end of the next micro-batch; `start` itself, the same object, when there is nothing to read.

        Parameters
        ----------
        start : mapping
            Document of the position reached.
        limit : int or None
            Most offsets to take; None takes all.
        may_wait : bool
            Whether `minOffsetsPerTrigger` applies.
        """
        reached = _position(start)
        now = self._latest = self._frozen or self._now()
        lost = self._check_against(reached, now)
        begin = self._begin(reached, now)
        count = new_offsets(begin, now.offsets)
        if count == 0 and not lost:
            return dict(start) if not isinstance(start, dict) else start
        if may_wait and not lost and self._waits(count):
            return dict(start) if not isinstance(start, dict) else start
        self._last_batch_s = self._monotonic_s()
        end = now.offsets if limit is None else rate_limit(limit, begin, now.offsets)
        return Position(end, now.topic_ids).to_document()

    def all_latest(self) -> dict[str, Any]:
        """Give the end of the log, for Spark versions that do not pass the start. Equal positions give equal text."""
        self._latest = self._now()
        return self._latest.to_document()

    def reported_latest(self) -> dict[str, Any] | None:
        """Give the end of the log as last seen, for the query's progress."""
        return self._latest.to_document() if self._latest else None

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[OffsetRange, str]]:
        """Give the ranges between two positions, each with the id of its topic (or "").

        Depends on nothing but the positions and on what the log still holds, so that a replayed batch is the same one.
        """
        if start == end:
            return []
        first, last = _position(start), _position(end)
        self._check_recreated(first, last)
        try:
            begin = self._begin(first, last)
            earliest = self._log.earliest(last.offsets)
        except PylogError as error:
            if error.condition != "PYLOG_UNKNOWN_TOPIC":
                raise
            report_loss(
                self._options.fail_on_data_loss, f"A topic of this query does not exist any more: {error.sentence}"
            )
            return []
        found = [
            OffsetRange(partition, self._held(partition, begin[partition], earliest[partition]), offset)
            for partition, offset in last.offsets.items()
            if begin[partition] < offset
        ]
        options = self._options
        return [
            (offsets, last.topic_ids.get(offsets.partition.topic, ""))
            for offsets in plan(found, options.min_partitions, options.max_records)
        ]

    def _now(self) -> Position:
        assigned = self._log.assigned()
        return Position(self._log.latest(assigned.offsets), assigned.topic_ids)

    def _begin(self, reached: Position, now: Position) -> Offsets:
        """Where each partition of `now` goes on; earliest for those that `reached` does not know or knew by another id."""
        recreated = reached.recreated(now)
        known = {
            partition: offset
            for partition, offset in reached.offsets.items()
            if partition in now.offsets and partition.topic not in recreated
        }
        return {**known, **self._log.earliest(sorted(now.offsets.keys() - known.keys()))}

    def _check_against(self, reached: Position, now: Position) -> bool:
        """Report what the log has lost since `reached`; whether there was anything."""
        recreated = self._check_recreated(reached, now)
        gone = sorted(reached.offsets.keys() - now.offsets.keys())
        if gone:
            report_loss(
                self._options.fail_on_data_loss,
                f"{gone[0]}{_more(gone)} was read up to offset {reached.offsets[gone[0]]} and is not there any more (topic "
                "deleted, or no longer subscribed to)",
            )
        shorter = sorted(
            partition
            for partition, offset in reached.offsets.items()
            if partition.topic not in recreated and now.offsets.get(partition, offset) < offset
        )
        if shorter:
            report_loss(
                self._options.fail_on_data_loss,
                f"{shorter[0]}{_more(shorter)} ends at offset {now.offsets[shorter[0]]}, before offset "
                f"{reached.offsets[shorter[0]]}, which this query has read up to",
            )
        return bool(recreated or gone or shorter)

    def _check_recreated(self, before: Position, after: Position) -> set[str]:
        recreated = before.recreated(after)
        if recreated:
            topic = min(recreated)
            report_loss(
                self._options.fail_on_data_loss,
                f"The topic {topic!r} was deleted and created again while this query was reading it (topic id "
                f"{before.topic_ids[topic]} became {after.topic_ids[topic]})",
                "PYLOG_TOPIC_RECREATED",
            )
        return recreated

    def _held(self, partition: TopicPartition, offset: int, earliest: int) -> int:
        if offset >= earliest:
            return offset
        report_loss(
            self._options.fail_on_data_loss,
            f"{partition} holds nothing before offset {earliest}, and this query needs it from offset {offset}",
        )
        return earliest

    def _waits(self, count: int) -> bool:
        now_s = self._monotonic_s()
        if self._last_batch_s is None:
            self._last_batch_s = now_s
        waited_ms = (now_s - self._last_batch_s) * 1_000
        return waits_for_more(count, self._options.min_offsets, waited_ms, self._options.max_delay_ms)


def check_in_log(log: Log, offsets: Offsets, limit: Limit, option: str, fail: bool) -> Offsets:
    """Check that the offsets which the user wrote as numbers lie in the log.

    Others (earliest, latest, of a time) were in it when the brokers were asked; retention may have moved on since, and
    that is no mistake of the user.

    Returns
    -------
    Offsets
        With numbers outside the log replaced by the nearest offset in it.

    Raises
    ------
    PylogError
        ``PYLOG_OFFSET_OUT_OF_RANGE`` when `fail` and a number lies outside.
    """
    if not isinstance(limit, Specific):
        return offsets
    numbers = [partition for partition, offset in limit.offsets.items() if offset >= 0]
    earliest, latest = log.earliest(numbers), log.latest(numbers)
    for partition in sorted(numbers):
        offset, low, high = offsets[partition], earliest[partition], latest[partition]
        if fail and not low <= offset <= high:
            raise PylogError(
                "PYLOG_OFFSET_OUT_OF_RANGE",
                f"{option} asks for offset {offset} of {partition}, which holds {low} to {high} (exclusive); give an offset "
                "in that range, -2 for earliest or -1 for latest, or set failOnDataLoss to false.",
            )
    inside = {partition: min(max(offsets[partition], earliest[partition]), latest[partition]) for partition in numbers}
    return {**offsets, **inside}


def _position(document: Mapping[str, Any]) -> Position:
    try:
        return Position.from_document(document)
    except PositionError as error:
        raise PylogError("PYLOG_INVALID_CHECKPOINT", f"This query cannot go on: {error}.") from None


def _more(partitions: list[TopicPartition]) -> str:
    return f" (and {len(partitions) - 1} more)" if len(partitions) > 1 else ""
