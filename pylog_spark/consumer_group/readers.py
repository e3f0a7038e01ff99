"""The native readers of the partitions that one member owns: one for each partition, read in turn."""

from collections import deque
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.consumer import Record, read_records, record_reader
from pylog_spark.client.errors import LogError
from pylog_spark.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pylog_spark._native import RangeReader

#: Most records that one reader hands over at once.
_BATCH_RECORDS = 1_000
_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


class Readers:
    """Records of some partitions from given offsets on. Not thread-safe.

    Parameters
    ----------
    config : mapping of str to str
        Settings of the native client.
    reset : str
        ``earliest``, ``latest`` or ``none``: where to begin when the log does not hold an offset.
    """

    def __init__(self, config: Mapping[str, str], reset: str) -> None:
        self._config = dict(config)
        self._reset = reset
        self._open: dict[TopicPartition, RangeReader] = {}
        self._turn: deque[TopicPartition] = deque()
        self._offsets: dict[TopicPartition, int] = {}

    def begin(self, offsets: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Begin to read at these offsets, or where `reset` says for None. Returns the offsets. Raises `LogError`."""
        unset = [partition for partition, offset in offsets.items() if offset is None]
        resolved = {partition: offset for partition, offset in offsets.items() if offset is not None}
        resolved.update(self._resolved(unset))
        for partition, offset in resolved.items():
            self._offsets[partition] = offset
            self._turn.append(partition)
        return resolved

    def end(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading `partitions`."""
        for partition in partitions:
            self._offsets.pop(partition, None)
            reader = self._open.pop(partition, None)
            if reader is not None:
                reader.stop()
        self._turn = deque(partition for partition in self._turn if partition in self._offsets)

    def next(self, wait_ms: int) -> list[Record]:
        """Give records of the partition whose turn it is, an empty list when none come within `wait_ms`.

        Raises
        ------
        LogError
            When the reader fails. The next call of that partition goes on at the same offset.
        """
        if not self._turn:
            return []
        partition = self._turn[0]
        self._turn.rotate(-1)
        reader = self._open.get(partition)
        if reader is None:
            reader = self._open[partition] = record_reader(
                self._config, partition, self._offsets[partition], None, max_rows=_BATCH_RECORDS
            )
        try:
            records = read_records(partition[0], reader, wait_ms)
        except LogError as error:
            self._open.pop(partition).stop()
            if error.kind != _OUT_OF_RANGE or self._reset == "none":
                raise
            self._offsets.update(self._resolved([partition]))
            return []
        if records:
            self._offsets[partition] = records[-1].offset + 1
        return records

    @property
    def count(self) -> int:
        """How many partitions are read."""
        return len(self._turn)

    def close(self) -> None:
        """Stop all readers."""
        self.end(list(self._offsets))

    def _resolved(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        if self._reset == "none":
            topic, partition = min(partitions)
            sentence = f"The group has no offset of {topic}-{partition}, and start is none: commit one first."
            raise LogError(_OUT_OF_RANGE, sentence)
        mark = EARLIEST if self._reset == "earliest" else LATEST
        servers = self._config["bootstrap.servers"]
        with Admin(servers, self._config) as admin:
            found = admin.offsets([(*partition, mark) for partition in sorted(partitions)])
        return {TopicPartition(offset.topic, offset.partition): offset.offset for offset in found}
