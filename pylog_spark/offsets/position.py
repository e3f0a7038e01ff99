"""The position of a streaming query, as it is written in Spark's checkpoint.

    {"@pylog": {"topic_ids": {"flights": "Qm1..."}, "version": 1}, "flights": {"0": 12, "1": 7}}

Topics are written as in the offsets of Spark's Kafka connector; no topic's name begins with ``@``. The connector's own documents,
which are the same without ``@pylog``, are read too, so that a query can go on with pylog from such a checkpoint. An offset is that
of the next record to read. Spark compares offsets as JSON text, so the document is canonical: topics sorted by name, partitions
by number, always written by `to_document`. Topic ids are absent where the brokers have none (Kafka before 2.8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pylog_spark.offsets import Offsets, TopicPartition

META = "@pylog"
VERSION = 1


class PositionError(ValueError):
    """A document in the checkpoint that cannot be read; the argument is one sentence."""


@dataclass(frozen=True)
class Position:
    """Offsets, with the ids of their topics.

    Attributes
    ----------
    offsets : dict of TopicPartition to int
        Next offset to read of each partition.
    topic_ids : dict of str to str
        Id of each topic that has one.
    """

    offsets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """Give the canonical document: equal positions give equal JSON text."""
        topics: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in self.offsets.items():
            topics.setdefault(topic, {})[partition] = offset
        ids = {topic: self.topic_ids[topic] for topic in sorted(topics) if self.topic_ids.get(topic)}
        document: dict[str, Any] = {META: {"topic_ids": ids, "version": VERSION}}
        for topic in sorted(topics):
            document[topic] = {str(partition): offset for partition, offset in sorted(topics[topic].items())}
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Position:
        """Read a document of `to_document`, or one of Spark's Kafka connector.

        Raises
        ------
        PositionError
            When it is something else, or of a later version.
        """
        meta = document.get(META, {"version": 0} if _is_connectors(document) else None)
        if not isinstance(meta, dict) or not isinstance(meta.get("version"), int):
            raise PositionError(
                "the checkpoint holds offsets that neither pylog nor Spark's Kafka connector wrote (of another source?); "
                "use a new checkpointLocation"
            )
        if meta["version"] > VERSION:
            raise PositionError(
                f"the checkpoint was written by a later pylog (offset version {meta['version']}, this one knows "
                f"{VERSION}); upgrade pylog-spark"
            )
        offsets = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in document.items()
            if topic != META
            for partition, offset in partitions.items()
        }
        return cls(offsets, dict(meta.get("topic_ids", {})))

    def recreated(self, now: Position) -> set[str]:
        """Give the topics that both positions know by different ids: deleted and made again in between."""
        return {
            topic
            for topic, topic_id in self.topic_ids.items()
            if topic_id and now.topic_ids.get(topic) and now.topic_ids[topic] != topic_id
        }


def _is_connectors(document: Mapping[str, Any]) -> bool:
    """Whether this is ``{"topic": {"0": 12, ...}, ...}``."""
    return all(
        isinstance(partitions, dict)
        and all(name.isdecimal() and type(offset) is int and offset >= 0 for name, offset in partitions.items())
        for partitions in document.values()
    )
