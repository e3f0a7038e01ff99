"""How far a query is behind the log, in records, bytes and seconds.

Records are counted as offsets, as Kafka's tools count them. Bytes are an estimate: the first batch that is not read says how large a record is.
Seconds are the age of the first record that is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pylog_spark.client.admin import Admin
from pylog_spark.client.consumer import read_records, record_reader
from pylog_spark.client.errors import LogError, translated
from pylog_spark.client.places import Bounds, bounds_of
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position

#: How long the first record that is not read is waited for, in milliseconds.
_WAIT_MS = 5_000


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a query is behind in a partition.

    Attributes
    ----------
    topic, partition
        Which one.
    offset : int
        That of the next record to read.
    start_offset, end_offset : int or None
        The first offset that the log holds, and that of the next record to come; None where the topic is gone.
    lag : int or None
        Offsets between; counted from the first one where the log does not hold the next any more.
    lag_bytes : int or None
        About how many bytes are stored of them; None where there is no record to measure.
    behind_ms : int or None
        The age of the first record that is not read, 0 where there is none; None where that has no timestamp.
    missing : str or None
        What the query will miss, in words; None where nothing.
    """

    topic: str
    partition: int
    offset: int
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_bytes: int | None
    behind_ms: int | None
    missing: str | None


def lag_of(config: Mapping[str, str], position: Position, now_ms: int) -> list[PartitionLag]:
    """How far a source is behind in each of its partitions, in their order.

    Parameters
    ----------
    config : mapping of str to str
        Settings of the client by Kafka's names, with ``bootstrap.servers``.
    position : Position
        Where the source is.
    now_ms : int
        The time, in milliseconds since 1970.

    Raises
    ------
    LogError
        When no broker can be reached.
    """
    partitions = sorted(position.offsets)
    with Admin(config["bootstrap.servers"], config) as admin:
        bounds = bounds_of(admin, partitions)
    return [_lag(config, position, partition, bounds.get(partition), now_ms) for partition in partitions]


def _lag(
    config: Mapping[str, str],
    position: Position,
    partition: TopicPartition,
    bounds: Bounds | None,
    now_ms: int,
) -> PartitionLag:
    offset = position.offsets[partition]
    if bounds is None:
        return PartitionLag(*partition, offset, None, None, None, None, None, "the topic or the partition is gone")
    start, end, topic_id = bounds
    was = position.topic_ids.get(partition.topic)
    if was and topic_id and was != topic_id:
        missing = "the topic was deleted and created again"
        return PartitionLag(*partition, offset, start, end, None, None, None, missing)
    begin = max(offset, start)
    lag = max(end - begin, 0)
    gone = f"offsets {offset} to {start - 1} are not in the log any more" if offset < start else None
    gone = f"the log ends at {end}, before offset {offset}" if offset > end else gone
    if not lag:
        return PartitionLag(*partition, offset, start, end, 0, 0, 0, gone)
    lag_bytes, behind_ms = _measured(config, partition, begin, end, now_ms)
    return PartitionLag(*partition, offset, start, end, lag, lag_bytes, behind_ms, gone)


def _measured(
    config: Mapping[str, str], partition: TopicPartition, begin: int, end: int, now_ms: int
) -> tuple[int | None, int | None]:
    """Bytes of a range, and the age of its first record; None where the range has no record, or that has no timestamp."""
    from pylog_spark._native import Client

    with translated():
        client = Client(dict(config))
        try:
            ((_, records, size),) = client.advance([(*partition, begin, end, 1, None, False)])
        finally:
            client.close()
    if not records:
        return None, None
    reader = record_reader(config, (partition.topic, partition.partition), begin, end, max_rows=1)
    try:
        first = read_records(partition.topic, reader, _WAIT_MS)
    except LogError:
        # It was removed meanwhile.
        first = []
    finally:
        reader.stop()
    behind_ms = max(now_ms - first[0].timestamp_ms, 0) if first and first[0].timestamp_ms >= 0 else None
    return round(size / records * (end - begin)), behind_ms
