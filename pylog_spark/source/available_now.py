"""Trigger.AvailableNow: what must hold between the end seen at its start, the end of a batch, and the log as it is now.

The four conditions are those of Spark's Kafka connector (its KafkaExceptions). As there, they end the query whatever
failOnDataLoss says, because Trigger.AvailableNow promises all records that were there when it started.
"""

from __future__ import annotations

from collections.abc import Iterable

from pylog_spark.errors import PylogError
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position

_ADVICE = "start the query again; it goes on from its checkpoint"


def check_available_now(prefetched: Position, end: Position, now: Position) -> None:
    """Check the end of a batch.

    Parameters
    ----------
    prefetched : Position
        The end seen when the query started.
    end : Position
        The end of the batch.
    now : Position
        The end of the log.

    Raises
    ------
    PylogError
        One of the ``PYLOG_AVAILABLE_NOW_...`` conditions.
    """
    if differing := prefetched.offsets.keys() ^ end.offsets.keys():
        raise PylogError(
            "PYLOG_AVAILABLE_NOW_PARTITIONS",
            f"A batch of Trigger.AvailableNow does not have the partitions that were seen at its start: {_some(differing)}; "
            f"{_ADVICE}.",
        )
    if beyond := [each for each, offset in end.offsets.items() if offset > prefetched.offsets[each]]:
        raise PylogError(
            "PYLOG_AVAILABLE_NOW_BEYOND",
            f"A batch of Trigger.AvailableNow ends after the end that was seen at its start: {_some(beyond)}; {_ADVICE}.",
        )
    if lost := end.offsets.keys() - now.offsets.keys():
        raise PylogError(
            "PYLOG_AVAILABLE_NOW_LOST",
            f"Partitions disappeared while Trigger.AvailableNow was reading them: {_some(lost)}; {_ADVICE}.",
        )
    if shorter := [each for each, offset in end.offsets.items() if offset > now.offsets[each]]:
        raise PylogError(
            "PYLOG_AVAILABLE_NOW_TRUNCATED",
            f"Logs end before the end that Trigger.AvailableNow saw at its start: {_some(shorter)}; {_ADVICE}.",
        )


def _some(partitions: Iterable[TopicPartition], most: int = 5) -> str:
    names = [str(partition) for partition in sorted(partitions)]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
