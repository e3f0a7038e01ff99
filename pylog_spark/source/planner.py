"""What a streaming query reads next, decided from positions. Asks a `Log`; does not know Spark.

When the brokers contradict a position (a topic is gone or recreated, a log is shorter than what was read), they are asked once more,
and then the loss is reported through `report_loss`. With failOnDataLoss=false the query goes on: partitions that are gone are
dropped, recreated topics begin at their earliest offset. A partition that is new to the query begins at its earliest offset.

Requests of one trigger: in `latest`, metadata, one round for the ends of all partitions, and one for the first offsets of those that have
moved, if any; in `ranges` none, since it uses what `latest` has just read, except for a batch that is run again after a restart and for
Trigger.AvailableNow; in `reported_latest` one round, for the high watermarks.

Of ten thousand partitions a trigger finds few that have moved. All is decided about these; the others are compared once, and a position
that was decided a moment ago is not read from its document again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import Limit, Specific
from pylog_spark.offsets.position import Position, PositionError
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.ratelimit import new_offsets, rate_limit, waits_for_more
from pylog_spark.offsets.visible import cut_visible
from pylog_spark.options import ReadOptions
from pylog_spark.source.available_now import check_available_now
from pylog_spark.source.held_back import HeldBack
from pylog_spark.source.log import Log
from pylog_spark.source.loss import report_loss

#: Most positions that are remembered: the start and the end of the batch that is planned, and the start of the one before.
_KNOWN_MAX = 3


class Seen(NamedTuple):
    """The log at one point in time, and what has moved since a position.

    Attributes
    ----------
    end : Position
        The end of each partition, with the topics' ids.
    earliest : dict of TopicPartition to int
        The earliest offset of those partitions that have moved: that do not end where the position is, are new or of a topic that was
        created again.
    """

    end: Position
    earliest: Offsets


class Clock(NamedTuple):
    """Time, for `maxTriggerDelay` and for the pause before brokers are asked again."""

    monotonic_s: Callable[[], float] = time.monotonic
    sleep_s: Callable[[float], None] = time.sleep


class StreamPlanner:
    """The driver's side of one streaming query.

    Parameters
    ----------
    options : ReadOptions
        The options of the query.
    log : Log
        Asks the brokers about the query's partitions.
    clock : Clock or None
        Time; None takes the real one.
    held_back : HeldBack or None
        Finds transactions that hold the query back.
    """

    def __init__(
        self, options: ReadOptions, log: Log, clock: Clock | None = None, held_back: HeldBack | None = None
    ) -> None:
        self._options = options
        self._log = log
        self._clock = clock or Clock()
        self._held_back = held_back
        self._available_now = False
        self._frozen: Position | None = None
        self._latest: Position | None = None
        #: The last batch that `latest` gave, as (start, end), with what was seen then.
        self._given: tuple[Mapping[str, Any], Mapping[str, Any], Seen] | None = None
        self._last_batch_s = -math.inf
        self._reported_empty = False
        #: The last documents, the newest first, and their positions: Spark gives them back, as they are or read from JSON again.
        self._known: list[tuple[Mapping[str, Any], Position]] = []

    def initial(self) -> dict[str, Any]:
        """Give the position at which a new query starts."""
        assigned = self._log.assigned()
        options = self._options
        offsets = self._log.resolve(options.start, options.start_option, assigned.offsets)
        offsets = check_in_log(self._log, offsets, options.start, options.start_option, options.fail_on_data_loss)
        return Position(offsets, assigned.topic_ids).to_document()

    def freeze(self) -> None:
        """Let the query end where the log ends when it is next read (Trigger.AvailableNow)."""
        self._available_now = True

    def latest(self, start: Mapping[str, Any], limit: int | None, may_wait: bool) -> dict[str, Any]:
        """Give the end of the next micro-batch; `start` itself, the same object, when there is nothing to read.

        Parameters
        ----------
        start : mapping
            Document of the position reached.
        limit : int or None
            Most offsets to take; None takes all.
        may_wait : bool
            Whether the options that limit a trigger apply; else everything is taken at once.
        """
        unchanged = start if isinstance(start, dict) else dict(start)
        reached = self._position(start)
        seen = self._look(reached, reached, self._frozen)
        if self._frozen is None and self._is_released(seen.end.offsets):
            seen = self._look(reached, reached, None)
        now = self._latest = seen.end
        if self._available_now:
            self._frozen = now
        if not now.offsets:
            return self._stay(unchanged, reached, now)
        self._reported_empty = False
        lost = self._check_against(reached, now)
        begin = _begin(reached, now, seen.earliest)
        end = {partition: now.offsets[partition] for partition in begin}
        waits = may_wait and self._waits(reached, end)
        if not lost and (waits or new_offsets(begin, end) == 0):
            return unchanged
        if limit is not None:
            end = rate_limit(limit, begin, end)
        if may_wait:
            end = self._cut_visible(seen, begin, end)
        if not lost and all(end[partition] <= begin[partition] for partition in end):
            return unchanged
        given = Position({**now.offsets, **end}, now.topic_ids)
        document = given.to_document()
        self._know(document, given)
        self._given = (start, document, seen)
        return document

    def _stay(self, unchanged: dict[str, Any], reached: Position, now: Position) -> dict[str, Any]:
        """Keep the position while there are no partitions, and report that once. With an empty position all records would be read
        again when the topics are back."""
        if not self._reported_empty:
            self._reported_empty = self._check_against(reached, now)
        return unchanged

    def all_latest(self) -> dict[str, Any]:
        """Give the end of the log, for Spark versions that do not pass the start. Equal positions give equal text."""
        assigned = self._log.assigned()
        self._is_released(assigned.offsets)
        self._latest = Position(self._log.latest(assigned.offsets), assigned.topic_ids)
        return self._latest.to_document()

    def reported_latest(self) -> dict[str, Any] | None:
        """Give the end of the log, for the query's progress: the high watermark, so that records behind an open transaction count
        as not read yet. When the brokers do not answer, the end that `latest` has seen."""
        seen = self._latest
        if seen is None:
            return None
        ends: Offsets = {}
        if self._options.client.get("isolation.level") == "read_committed":
            with suppress(PylogError):
                ends = self._log.latest(seen.offsets, "read_uncommitted")
        high = {each: max(offset, ends.get(each, offset)) for each, offset in seen.offsets.items()}
        return Position(high, seen.topic_ids).to_document()

    def _is_released(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether a transaction that held the query back was ended just now, so that there may be more to read."""
        return self._held_back is not None and self._held_back.look(partitions)

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[tuple[OffsetRange, str]]:
        """Give the ranges between two positions, each with the id of its topic (or "").

        The ranges depend only on the positions and on what the log still holds, so a batch that is run again is the same batch.
        """
        if start == end:
            return []
        first, last = self._position(start), self._position(end)
        if self._given is not None and self._given[:2] == (start, end) and not self._frozen:
            seen = self._given[2]
        else:
            seen = self._look(last, first, None)
        if self._frozen is not None:
            check_available_now(self._frozen, last, seen.end)
        self._check_recreated(first, last)
        self._lost(last, seen.end)
        recreated = last.recreated(seen.end)
        found = []
        for partition, offset in self._checked_begin(first, last, seen.earliest).items():
            end_offset = min(last.offsets[partition], seen.end.offsets[partition])
            if partition.topic not in recreated and offset < end_offset:
                begin_offset = self._held(partition, offset, seen.earliest[partition])
                found.append(OffsetRange(partition, begin_offset, end_offset))
        return [(offsets, last.topic_ids.get(offsets.partition.topic, "")) for offsets in found]

    def _look(self, reached: Position, since: Position, frozen: Position | None) -> Seen:
        """Read the log's end, and the beginning of what has moved `since`; once more after a pause when they contradict `reached`: a broker
        may lag behind another one."""
        if frozen is not None:
            moved = _moved(since, frozen)
            begins = self._log.earliest(sorted(_unknown(since, frozen, moved)))
            return Seen(frozen, {each: begins[each] if each in begins else since.offsets[each] for each in moved})
        attempts = max(2, self._options.offset_retries)
        for attempt in range(attempts):
            if attempt:
                self._clock.sleep_s(self._options.offset_retry_ms / 1_000)
            assigned = self._log.assigned(reached.offsets)
            try:
                latest = self._log.latest(assigned.offsets)
                late = self._late(reached, Position(latest, assigned.topic_ids))
                seen = Seen(Position({**latest, **late}, assigned.topic_ids), {})
                seen = seen._replace(earliest=self._log.earliest(_moved(since, seen.end)))
            except PylogError as error:
                # Deleted between the two requests: the next attempt does not see it any more.
                if error.condition != "PYLOG_UNKNOWN_TOPIC" or attempt + 1 == attempts:
                    raise
                continue
            gone = reached.offsets.keys() - latest.keys()
            if not _shorter(reached, seen.end) and not any(self._options.subscription.includes(each) for each in gone):
                break
        return seen

    def _late(self, reached: Position, now: Position) -> Offsets:
        """Where `reached` is behind the end of what can be read now, and not behind the log's: a query that read uncommitted data before and
        reads committed data now may be ahead of the last stable offset."""
        shorter = _shorter(reached, now)
        ends = self._log.latest(shorter, "read_uncommitted")
        return {each: reached.offsets[each] for each in shorter if ends[each] >= reached.offsets[each]}

    def _cut_visible(self, seen: Seen, begin: Offsets, end: Offsets) -> Offsets:
        records, size = self._options.trigger_records, self._options.trigger_bytes
        if records is None and size is None:
            return end
        # Records that are gone cannot be counted; their loss is reported when the batch is planned.
        held = {each: max(offset, seen.earliest[each]) for each, offset in begin.items()}
        try:
            return cut_visible(held, end, records, size, self._log.advance)
        except PylogError as error:
            if error.condition != "PYLOG_DATA_LOSS":
                raise
            return end

    def _check_against(self, reached: Position, now: Position) -> bool:
        """Report what the log has lost since `reached`. Returns whether anything was lost."""
        recreated = self._check_recreated(reached, now)
        return self._lost(reached, now) or bool(recreated)

    def _lost(self, reached: Position, now: Position) -> bool:
        """Report partitions of `reached` that are gone or shorter. Returns whether there are any."""
        gone = sorted(reached.offsets.keys() - now.offsets.keys())
        fail = self._options.fail_on_data_loss
        if gone:
            topics = {partition.topic for partition in now.offsets}
            deleted = gone[0].topic not in topics and self._options.subscription.includes(gone[0])
            what = f"{gone[0]}{_more(gone)} was read up to offset {reached.offsets[gone[0]]}"
            if deleted:
                report_loss(fail, f"The topic {gone[0].topic!r} was deleted: {what}", "PYLOG_TOPIC_DELETED")
            else:
                report_loss(
                    fail, f"{what} and is not there any more, or no longer subscribed to", "PYLOG_PARTITION_GONE"
                )
        shorter = sorted(_shorter(reached, now))
        if shorter:
            sentence = (
                f"{shorter[0]}{_more(shorter)} ends at offset {now.offsets[shorter[0]]}, before offset "
                f"{reached.offsets[shorter[0]]}, which this query has read up to"
            )
            report_loss(fail, sentence, "PYLOG_LOG_TRUNCATED")
        return bool(gone or shorter)

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

    def _checked_begin(self, first: Position, last: Position, earliest: Offsets) -> Offsets:
        """Where each partition of the batch that has moved goes on. Reports a new one whose first records are gone already."""
        begin = _begin(first, last, {each: offset for each, offset in earliest.items() if each in last.offsets})
        recreated = first.recreated(last)
        for partition in sorted(begin.keys() - first.offsets.keys()):
            if begin[partition] > 0 and partition.topic not in recreated:
                report_loss(
                    self._options.fail_on_data_loss,
                    f"{partition}, which is new to this query, begins at offset {begin[partition]} and not at 0",
                )
        return begin

    def _held(self, partition: TopicPartition, offset: int, earliest: int) -> int:
        if offset >= earliest:
            return offset
        report_loss(
            self._options.fail_on_data_loss,
            f"{partition} holds nothing before offset {earliest}, and this query needs it from offset {offset}",
        )
        return earliest

    def _position(self, document: Mapping[str, Any]) -> Position:
        for known, position in self._known:
            if known == document:
                return position
        try:
            position = Position.from_document(document)
        except PositionError as error:
            raise PylogError("PYLOG_INVALID_CHECKPOINT", f"This query cannot go on: {error}.") from None
        self._know(document, position)
        return position

    def _know(self, document: Mapping[str, Any], position: Position) -> None:
        self._known = [(document, position), *self._known[: _KNOWN_MAX - 1]]

    def _waits(self, reached: Position, moved: Offsets) -> bool:
        """Whether `minOffsetsPerTrigger` puts the batch off. A new partition counts from offset 0, as in Spark's Kafka connector."""
        count = sum(offset - reached.offsets.get(partition, 0) for partition, offset in moved.items())
        now_s = self._clock.monotonic_s()
        waited_ms = (now_s - self._last_batch_s) * 1_000
        waits = waits_for_more(count, self._options.min_offsets, waited_ms, self._options.max_delay_ms)
        if not waits:
            self._last_batch_s = now_s
        return waits


def check_in_log(log: Log, offsets: Offsets, limit: Limit, option: str, fail: bool) -> Offsets:
    """Check that the offsets which the user wrote as numbers lie in the log.

    Other offsets (earliest, latest, by time) lay in the log when the brokers were asked. Retention may have deleted records since,
    which is not the user's mistake.

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
    earliest, latest = log.bounds(numbers)
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


def _moved(since: Position, now: Position) -> list[TopicPartition]:
    """The partitions of `now` that are new, are not at the offset of `since`, or belong to a topic that was created again."""
    recreated = since.recreated(now)
    at = since.offsets.get
    return [
        each for each, offset in now.offsets.items() if at(each) != offset or (recreated and each.topic in recreated)
    ]


def _begin(reached: Position, now: Position, earliest: Offsets) -> Offsets:
    """Where the partitions of `earliest` go on; at earliest those that `reached` does not know or knew by another id."""
    unknown = _unknown(reached, now, earliest)
    return {each: offset if each in unknown else reached.offsets[each] for each, offset in earliest.items()}


def _unknown(reached: Position, now: Position, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    recreated = reached.recreated(now)
    return {each for each in partitions if each not in reached.offsets or each.topic in recreated}


def _shorter(reached: Position, now: Position) -> list[TopicPartition]:
    """The partitions that end before `reached`, of topics that were not created again."""
    end = now.offsets.get
    shorter = [each for each, offset in reached.offsets.items() if end(each, offset) < offset]
    recreated = reached.recreated(now) if shorter else set()
    return [each for each in shorter if each.topic not in recreated]


def _more(partitions: list[TopicPartition]) -> str:
    return f" (and {len(partitions) - 1} more)" if len(partitions) > 1 else ""
