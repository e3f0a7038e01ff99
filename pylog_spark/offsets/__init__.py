"""Deciding which offsets to read: pure functions over small values.

Nothing here talks to a broker, imports pyspark or looks at a clock. Ranges are ``[start, end)`` everywhere.
"""

from __future__ import annotations

from pylog_spark.topic_partition import TopicPartition

__all__ = ["Offsets", "TopicPartition"]

#: An offset for each partition.
Offsets = dict[TopicPartition, int]
