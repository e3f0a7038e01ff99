"""How much of the new records one micro-batch takes. The rules are those of Spark's Kafka connector
(KafkaMicroBatchStream.rateLimit and delayBatch), whose names the options have.

Limits count offsets, not records: compaction and transaction markers leave gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pylog_spark.offsets import Offsets, TopicPartition


def rate_limit(limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Cut the ends so that about `limit` offsets are taken, shared in proportion to what each partition has.

    A partition with anything new gets at least one offset, so with more such partitions than `limit` the batch is
    larger than `limit`: a small partition is never starved. No end passes the given one.

    Parameters
    ----------
    limit : int
        Offsets in all, at least 1.
    start : mapping
        First offset to read, for every partition of `end`.
    end : mapping
        What is there now.
    """
    sizes = {partition: last - start[partition] for partition, last in end.items() if last > start[partition]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    limited = dict(end)
    for partition, size in sizes.items():
        # Whole numbers: a float share loses single offsets from 2**53 on.
        share = max(1, limit * size // total)
        limited[partition] = min(end[partition], start[partition] + share)
    return limited


def waits_for_more(new_offsets: int, min_offsets: int | None, waited_ms: float, max_delay_ms: int) -> bool:
    """Whether a batch should wait: there is less than `min_offsets` and the longest delay has not passed yet."""
    return min_offsets is not None and new_offsets < min_offsets and waited_ms < max_delay_ms


def new_offsets(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Count the offsets between; partitions whose end lies before their start count nothing."""
    return sum(max(0, last - start[partition]) for partition, last in end.items())


def pieces(size: int, total: int, wanted: int) -> int:
    """Give the number of pieces for a range of `size` offsets out of `total` when `wanted` pieces are wanted in all.

    Half up, as Spark's KafkaOffsetRangeCalculator rounds; at least one.
    """
    return max(1, math.floor(size / total * wanted + 0.5))
