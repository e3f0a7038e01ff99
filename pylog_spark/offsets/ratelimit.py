"""How much of the new records one micro-batch takes, counted in offsets. The arithmetic is that of Spark's Kafka connector
(KafkaMicroBatchStream.rateLimit and delayBatch), floating point included: its options have the same names here, and a query
that is moved from it to pylog has the same batch boundaries.

Offsets are not records: compaction and transaction markers leave gaps. `records` counts what a reader sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pylog_spark.offsets import Offsets, TopicPartition


def rate_limit(limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Cut the ends so that about `limit` offsets are taken, shared in proportion to what each partition has.

    A partition with anything new gets at least one offset, so with more such partitions than `limit` the batch is
    larger than `limit`: a small partition is never starved. No end passes the given one. A share is rounded down, so a
    batch that would fit exactly may leave an offset for the next one.

    Parameters
    ----------
    limit : int
        Offsets in all, at least 1.
    start : mapping
        First offset to read, for every partition of `end`.
    end : mapping
        The offset after the last record that there is now.
    """
    sizes = {partition: last - start[partition] for partition, last in end.items() if last > start[partition]}
    total = float(sum(sizes.values()))
    limited = dict(end)
    for partition, size in sizes.items():
        share = limit * (size / total)
        # A share below one is still one offset.
        whole = math.ceil(share) if share < 1 else math.floor(share)
        limited[partition] = min(end[partition], start[partition] + whole)
    return limited


def waits_for_more(new_offsets: int, min_offsets: int | None, waited_ms: float, max_delay_ms: int) -> bool:
    """Whether a batch should wait: there is less than `min_offsets` and the longest delay has not passed yet."""
    return min_offsets is not None and new_offsets < min_offsets and waited_ms < max_delay_ms


def new_offsets(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Count the offsets from `start` to `end`; partitions whose end lies before their start count nothing."""
    return sum(max(0, last - start[partition]) for partition, last in end.items())
