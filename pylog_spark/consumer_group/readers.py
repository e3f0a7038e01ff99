"""The native readers of the partitions that one member owns: one each, read in turn."""

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
    """Records of some partitions from given offsets on. Not for several threads.

    Parameters
    ----------
    config : mapping
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
        """Read from these offsets on, from where `reset` says for None; give the offsets. Raises `LogError`."""
        unset = [place for place, offset in offsets.items() if offset is None]
        resolved = {place: offset for place, offset in offsets.items() if offset is not None}
        resolved.update(self._resolved(unset))
        for place, offset in resolved.items():
            self._offsets[place] = offset
            self._turn.append(place)
        return resolved

    def end(self, places: Collection[TopicPartition]) -> None:
        """Read no more from `places`."""
        for place in places:
            self._offsets.pop(place, None)
            reader = self._open.pop(place, None)
            if reader is not None:
                reader.stop()
        self._turn = deque(place for place in self._turn if place in self._offsets)

    def next(self, wait_ms: int) -> list[Record]:
        """Records of the partition whose turn it is, none when it has none within `wait_ms`.

        Raises
        ------
        LogError
            What the reader met; the next call goes on where it was.
        """
        if not self._turn:
            return []
        place = self._turn[0]
        self._turn.rotate(-1)
        reader = self._open.get(place)
        if reader is None:
            reader = self._open[place] = record_reader(
                self._config, place, self._offsets[place], None, max_rows=_BATCH_RECORDS
            )
        try:
            records = read_records(place[0], reader, wait_ms)
        except LogError as error:
            self._open.pop(place).stop()
            if error.kind != _OUT_OF_RANGE or self._reset == "none":
                raise
            self._offsets.update(self._resolved([place]))
            return []
        if records:
            self._offsets[place] = records[-1].offset + 1
        return records

    @property
    def count(self) -> int:
        """How many partitions are read."""
        return len(self._turn)

    def close(self) -> None:
        """Stop all readers."""
        self.end(list(self._offsets))

    def _resolved(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if not places:
            return {}
        if self._reset == "none":
            topic, partition = min(places)
            sentence = f"The group has no offset of {topic}-{partition}, and start is none: commit one first."
            raise LogError(_OUT_OF_RANGE, sentence)
        mark = EARLIEST if self._reset == "earliest" else LATEST
        servers = self._config["bootstrap.servers"]
        with Admin(servers, self._config) as admin:
            found = admin.offsets([(*place, mark) for place in sorted(places)])
        return {(topic, partition): offset for topic, partition, offset, _ in found}
