"""Missing records: the one place that decides which condition applies, whether it is an error or a warning, and where reading goes
on. `find_loss` is pure; `after_loss` asks the brokers, or the directory, for what it needs, in a task.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from pylog_spark.errors import PylogError, from_native, translated
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.limits import EARLIEST, LATEST
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.topics import TopicDescription
from pylog_spark.source.origin import Origin

_log = logging.getLogger("pylog_spark")

_ADVICE = (
    "The records between are gone. To go on with what is left, set failOnDataLoss to false; to begin anew, use another "
    "checkpointLocation"
)


class HeldRange(NamedTuple):
    """What the brokers say of a partition: its topic's id ("" where they have none), its first offset and its end."""

    topic_id: str
    earliest: int
    latest: int


class Loss(NamedTuple):
    """What is lost.

    Attributes
    ----------
    condition, sentence : str
        As in `PylogError`; the sentence without a final dot.
    left : (int, int) or None
        The offsets that can still be read, ``[start, end)``; None when there are none.
    """

    condition: str
    sentence: str
    left: tuple[int, int] | None


def report_loss(fail: bool, sentence: str, condition: str = "PYLOG_DATA_LOSS") -> None:
    """Raise, or warn when failOnDataLoss says to go on.

    Parameters
    ----------
    fail : bool
        The option `failOnDataLoss`.
    sentence : str
        What is gone, naming topic, partition and offsets, without a final dot.
    condition : str
        Which loss it is.

    Raises
    ------
    PylogError
        When `fail`.
    """
    if fail:
        raise PylogError(condition, f"{sentence}. {_ADVICE}.")
    _log.warning("%s: %s; going on because failOnDataLoss is false", condition, sentence)


def find_loss(partition: TopicPartition, wanted: int, end: int, topic_id: str, held: HeldRange | None) -> Loss | None:
    """Say what is lost of the offsets ``[wanted, end)``; None when nothing is.

    Parameters
    ----------
    partition : TopicPartition
        The partition of the range.
    wanted, end : int
        The next offset to read, and the offset to stop before.
    topic_id : str
        The topic's id when the range was planned, or "".
    held : HeldRange or None
        What the brokers hold now; None when the topic is gone.
    """
    if held is None:
        return Loss(
            "PYLOG_TOPIC_DELETED",
            f"The topic {partition.topic!r} was deleted; {partition} was read up to offset {wanted} of {end}",
            None,
        )
    if topic_id and held.topic_id and held.topic_id != topic_id:
        return Loss(
            "PYLOG_TOPIC_RECREATED",
            f"The topic {partition.topic!r} was deleted and created again (its id was {topic_id} and is now "
            f"{held.topic_id}); {partition} was read up to offset {wanted} of {end}",
            None,
        )
    if held.earliest > wanted:
        sentence = (
            f"{partition} holds nothing before offset {held.earliest}, and this query needs it from offset {wanted}"
        )
        return Loss("PYLOG_DATA_LOSS", sentence, (held.earliest, end) if held.earliest < end else None)
    if held.latest < end:
        sentence = (
            f"{partition} ends at offset {held.latest}, before offset {end}, up to which this query was to read it"
        )
        return Loss("PYLOG_LOG_TRUNCATED", sentence, (wanted, held.latest) if wanted < held.latest else None)
    return None


def after_loss(
    origin: Origin,
    fail: bool,
    partition: TopicPartition,
    span: tuple[int, int],
    topic_id: str,
    cause: tuple[str, str],
) -> tuple[int, int] | None:
    """Report why a reader ended before its range did, and give the range to go on with; None when nothing is left.

    Parameters
    ----------
    origin : Origin
        Where the log is.
    fail : bool
        The option `failOnDataLoss`.
    partition : TopicPartition
        The partition of the range.
    span : (int, int)
        The next offset to read, and the offset to stop before.
    topic_id : str
        The topic's id when the range was planned, or "".
    cause : (str, str)
        Kind and message of the native error, which is raised when the brokers still hold all records of `span`.

    Raises
    ------
    PylogError
        The loss when `fail`; the error of `cause` when nothing is lost.
    """
    wanted, end = span
    found = find_loss(partition, wanted, end, topic_id, _held(origin, partition))
    if found is None and cause[0] == "LOG_TRUNCATED":
        # The new leader has written since: its records up to `end` are not those that were there before.
        found = Loss("PYLOG_LOG_TRUNCATED", cause[1].rstrip(". "), span)
    if found is None:
        raise from_native(*cause)
    report_loss(fail, found.sentence, found.condition)
    return found.left


def _held(origin: Origin, partition: TopicPartition) -> HeldRange | None:
    with translated():
        asked = origin.open()
        try:
            (topic,) = all_decoded(TopicDescription, asked.describe_topics([partition.topic]))
            if topic.error == "UNKNOWN_TOPIC_OR_PARTITION":
                return None
            # The high watermark, not the last stable offset: records of an open transaction are late, not lost.
            bounds = asked.list_offsets([(*partition, EARLIEST), (*partition, LATEST)])
        finally:
            asked.close()
    (_, _, earliest, _), (_, _, latest, _) = bounds
    return HeldRange(topic.topic_id, earliest, latest)
