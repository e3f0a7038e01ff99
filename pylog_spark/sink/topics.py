"""The topics that a streaming query writes to: the same ones from micro-batch to micro-batch, or the query stops.

Otherwise, when a topic is deleted while a query writes to it, the next write would create it again, with the brokers' default number of
partitions and without the query's earlier rows. So a task creates no topic that its query has written to, and rows in a topic with
another id are not committed. The ids come from the query's last decision, or from an earlier micro-batch of the same process. Brokers
without topic ids (Kafka before 2.8) are not checked. Runs in Spark's Python workers; `checked` is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pylog_spark.errors import PylogError
from pylog_spark.sink.decision import TOPIC_IDS_MAX
from pylog_spark.sink.identity import Write

#: The conditions of a write to a deleted topic, before and after its producer has looked it up.
_TOPIC_IS_GONE = frozenset({"PYLOG_UNKNOWN_TOPIC", "PYLOG_TOPIC_RECREATED"})
#: Most queries that one process remembers.
_QUERIES_MAX = 1_000
_ADVICE = "start the query with another checkpointLocation"

#: The query's key -> the last version in which this process wrote, and the ids of the topics written to until then.
_written: dict[str, tuple[int, Mapping[str, str]]] = {}


def remembered(write: Write) -> Mapping[str, str] | None:
    """Give the topic ids that this process saw in an earlier micro-batch, which is committed by now; None when it saw none."""
    version, topic_ids = _written.get(write.key, (write.version, {}))
    return topic_ids if version < write.version else None


def remember(write: Write, topic_ids: Mapping[str, str]) -> None:
    """Remember the topic ids that `checked` gave."""
    if len(_written) >= _QUERIES_MAX:
        _written.clear()
    _written[write.key] = (write.version, topic_ids)


def checked(write: Write, known: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """Give the ids of `known` and `found` topics in one dict.

    Raises
    ------
    PylogError
        ``PYLOG_TOPIC_RECREATED`` when both have a topic by different ids.
    """
    for topic, topic_id in sorted(found.items()):
        if known.get(topic, topic_id) != topic_id:
            raise PylogError(
                "PYLOG_TOPIC_RECREATED",
                f"The topic {topic!r} was deleted and made again while query {write.key} was writing to it (its id was {known[topic]} "
                f"and is now {topic_id}): what the query wrote before is gone, and nothing of {write.name} is committed. To write to "
                f"the new topic, {_ADVICE}.",
            )
    together = {**known, **found}
    return dict(list(together.items())[:TOPIC_IDS_MAX])


def not_made_again(client: Mapping[str, str], topic: str | None, known: Mapping[str, str]) -> Mapping[str, str]:
    """Give the settings of a writer to `topic` (None: each row names its own) that creates none of the `known` topics."""
    return {**client, "allow.auto.create.topics": "false"} if topic in known else client


@contextmanager
def known_topic(write: Write | None, topic: str | None, known: Mapping[str, str]) -> Iterator[None]:
    """Turn the error of a topic that does not exist, inside the block, into ``PYLOG_TOPIC_DELETED`` when it is `known`."""
    try:
        yield
    except PylogError as error:
        if write is None or topic not in known or error.condition not in _TOPIC_IS_GONE:
            raise
        raise PylogError(
            "PYLOG_TOPIC_DELETED",
            f"The topic {topic!r}, which query {write.key} writes to, was deleted: what the query wrote before is gone, and the topic "
            f"is not made again in its place. To write to a new one, make it (pylog topic create {topic} --partitions 4) and {_ADVICE}.",
        ) from None
