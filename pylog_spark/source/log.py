"""What the driver asks the brokers: which partitions there are and where they begin and end.

The connection is opened at the first question and belongs to the process; a pickled `Log` holds only its options.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pylog_spark.contact import first_contact, topic_error
from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.offsets.limits import (
    EARLIEST,
    LATEST,
    AtTimestamp,
    Earliest,
    Latest,
    Limit,
    LimitError,
    check_names,
)
from pylog_spark.offsets.position import Position
from pylog_spark.options import ReadOptions


class Log:
    """The partitions that a query is subscribed to, at the brokers."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None}

    def check(self) -> None:
        """Check at ``load()`` that a broker answers and the named topics exist. Raises `PylogError` in seconds."""
        subscription = self._options.subscription
        names = subscription.topics or sorted({partition.topic for partition in subscription.partitions})
        for topic in first_contact(self._options.client, names):
            if topic["error"] is not None:
                raise topic_error(topic["name"], topic["error"])

    def assigned(self) -> Position:
        """Give the subscribed partitions that exist now (offsets 0) with the ids of their topics.

        Raises
        ------
        PylogError
            When a topic or partition that the user named does not exist.
        """
        subscription = self._options.subscription
        topics = self._describe()
        found = {
            TopicPartition(topic["name"], partition["partition"])
            for topic in topics
            for partition in topic["partitions"]
        }
        if subscription.partitions:
            missing = sorted(set(subscription.partitions) - found)
            if missing:
                raise PylogError(
                    "PYLOG_UNKNOWN_TOPIC", f"The brokers have no partition {missing[0]}; correct the option assign."
                )
            found = set(subscription.partitions)
        ids = {topic["name"]: topic["topic_id"] for topic in topics}
        return Position(dict.fromkeys(sorted(found), 0), ids)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Give the first offset that each partition holds."""
        return self._list(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Give the offset after the last readable record of each partition."""
        return self._list(dict.fromkeys(partitions, LATEST))

    def resolve(self, limit: Limit, option: str, partitions: Iterable[TopicPartition]) -> Offsets:
        """Turn what the user said into offsets.

        Parameters
        ----------
        limit : Limit
            Where to start or end.
        option : str
            The option that says so, for sentences.
        partitions : iterable of TopicPartition
            All that are read; `limit` must name them when it names any.

        Raises
        ------
        PylogError
            When partitions are missing or too many, or a time has no record.
        """
        partitions = list(partitions)
        try:
            check_names(limit, partitions, option)
        except LimitError as error:
            raise PylogError("PYLOG_INVALID_OPTION", f"The option {error}.") from None
        if isinstance(limit, Earliest):
            return self.earliest(partitions)
        if isinstance(limit, Latest):
            return self.latest(partitions)
        if isinstance(limit, AtTimestamp):
            return self._at_timestamp(limit, option, partitions)
        return self._numbers(limit.offsets, partitions)

    def close(self) -> None:
        """Close the connections; the next question opens them again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _numbers(self, offsets: Any, partitions: list[TopicPartition]) -> Offsets:
        """Replace -1 and -2 by what they stand for now."""
        marks = {partition: offsets[partition] for partition in partitions if offsets[partition] < 0}
        resolved = self._list(marks)
        return {partition: resolved.get(partition, offsets[partition]) for partition in partitions}

    def _at_timestamp(self, limit: AtTimestamp, option: str, partitions: list[TopicPartition]) -> Offsets:
        times = {
            partition: limit.by_partition[partition] if limit.timestamp_ms is None else limit.timestamp_ms
            for partition in partitions
        }
        # A negative number is a mark on the wire; no record is older than 0.
        found = self._list({partition: max(0, time_ms) for partition, time_ms in times.items()})
        missing = sorted(partition for partition, offset in found.items() if offset < 0)
        if missing and not limit.latest_when_missing:
            raise PylogError(
                "PYLOG_NO_OFFSET_FOR_TIMESTAMP",
                f"{missing[0]} has no record at or after {times[missing[0]]} ms, which {option} asks for; choose an "
                "earlier time, or set startingOffsetsByTimestampStrategy to latest to begin at its end.",
            )
        return {**found, **self.latest(missing)}

    def _list(self, wanted: dict[TopicPartition, int]) -> Offsets:
        if not wanted:
            return {}
        questions = [(partition.topic, partition.partition, time) for partition, time in wanted.items()]
        isolation = self._options.client.get("isolation.level", "read_uncommitted")
        with translated():
            answers = self._connected().list_offsets(questions, isolation)
        return {TopicPartition(topic, partition): offset for topic, partition, offset, _ in answers}

    def _describe(self) -> list[dict[str, Any]]:
        subscription = self._options.subscription
        with translated():
            if subscription.pattern:
                topics = self._connected().describe_topics(None)
                # By the brokers' flag: a name that begins with __ may be a user's.
                return [topic for topic in topics if not topic["is_internal"] and subscription.matches(topic["name"])]
            names = subscription.topics or sorted({partition.topic for partition in subscription.partitions})
            topics = list(self._connected().describe_topics(list(names)))
        for topic in topics:
            if topic["error"] is not None:
                raise topic_error(topic["name"], topic["error"])
        return topics

    def _connected(self) -> Any:
        if self._client is None:
            self._client = native().Client(dict(self._options.client))
        return self._client
