"""A topic of an archive as what `pylog_spark.archive.restoring` makes a topic of. Memory: about one frame. Not thread-safe."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pylog_spark.archive.checking import Segment
from pylog_spark.archive.document import Beginning, PartitionRange
from pylog_spark.archive.runs import cut
from pylog_spark.archive.store.reading import ArchiveLog


class StoredTopicReader:
    """Reads a topic of an archive once, partition after partition.

    Parameters
    ----------
    log : ArchiveLog
        The archive.
    topic : str
        The topic's name there.

    Attributes
    ----------
    beginning : Beginning
        What there is of it. How many replicas it had is not known: one.

    Raises
    ------
    LogError
        There is no such topic, or the archive cannot be read.
    """

    def __init__(self, log: ArchiveLog, topic: str) -> None:
        self._log, self._topic = log, topic
        (stored,) = log.stored_topics([topic])
        ranges = tuple(PartitionRange(number, *log.bounds(topic, number)) for number in range(stored.partitions))
        self.beginning = Beginning(
            topic,
            stored.topic_id,
            stored.cluster_id,
            stored.partitions,
            1,
            stored.configs,
            ranges,
            time.time_ns() // 1_000_000,
        )

    def segments(self) -> Iterator[Segment]:
        """Give the batches, some at once. Raises `LogError` at what is missing or damaged."""
        for each in self.beginning.ranges:
            if each.start == each.end:
                yield Segment(each.partition, b"", [])
                continue
            for piece in self._log.pieces(self._topic, each.partition, each.start, each.end):
                where = f"{self._topic}-{each.partition} of {self._log.url}"
                yield Segment(each.partition, piece, cut(piece, where))
