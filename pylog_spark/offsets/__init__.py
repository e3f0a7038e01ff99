"""Deciding which offsets to read: pure functions over small values.

Nothing here talks to a broker, imports pyspark or looks at a clock. Ranges are ``[start, end)`` everywhere.
"""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


#: An offset for each partition.
Offsets = dict[TopicPartition, int]
