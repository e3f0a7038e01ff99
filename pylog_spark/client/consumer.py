"""Records of a topic, one by one, for programs without Spark. (Spark reads whole Arrow batches: see `source`.)

It commits no offsets and joins no group: the caller keeps track of them. Not thread-safe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import translated
from pylog_spark.client.places import Place, Places

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RangeReader

_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
# How long to wait for records of an empty partition: when it is the only one, and when there are others to ask. Ctrl-C takes as long.
_WAIT_MS = 200
_POLL_MS = 10


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes
    ----------
    topic : str
        The topic.
    partition : int
        The number of the partition.
    offset : int
        Its offset there.
    timestamp_ms : int
        Milliseconds since 1970 UTC; -1 when it has none.
    timestamp_type : int
        Who set the timestamp: 0 the producer (CreateTime), 1 the broker (LogAppendTime).
    key, value : bytes or None
        Key and value.
    headers : tuple of (str, bytes or None)
        Its headers, in their order.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Consumer:
    """Iterates over the records of a topic; in offset order within each partition.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    topic : str
        The topic to read.
    partitions : sequence of int, optional
        The partitions to read; all when not given.
    start : str, int, datetime or mapping of int to int
        ``earliest``, ``latest``, an offset, an offset for each partition, or a time with a time zone.
    start_timestamp_ms : int, optional
        Begin at the first record at or after this time, in milliseconds since 1970; `start` is then ignored.
    follow : bool
        True waits for new records without end. False ends at the records that are there now, partition after partition.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names.

    Raises
    ------
    LogError
        When no broker can be reached, the topic or partition does not exist, or the log does not hold the offset.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        *,
        partitions: Sequence[int] | None = None,
        start: Place = "latest",
        start_timestamp_ms: int | None = None,
        follow: bool = True,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._config = {**(config or {}), "bootstrap.servers": bootstrap_servers}
        self._topic = topic
        self._follow = follow
        with Admin(bootstrap_servers, config) as admin:
            places = Places(admin, topic, partitions, self._config.get("isolation.level", "read_uncommitted"))
            self.starts = places.offsets(start) if start_timestamp_ms is None else places.at_ms(start_timestamp_ms)
        self._topic_id, self.partitions, self.ends = places.topic_id, places.partitions, places.ends
        self._open: dict[int, RangeReader] = {}

    def __iter__(self) -> Iterator[Record]:
        for records in self.batches():
            yield from records

    def batches(self) -> Iterator[list[Record]]:
        """Iterate over the records in lists, as they arrive; no list is empty."""
        return self._followed() if self._follow else self._ranges()

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading ahead and close the connections."""
        for reader in self._open.values():
            reader.stop()
        self._open.clear()

    def _reader(self, partition: int) -> "RangeReader":
        end = None if self._follow else self.ends[partition]
        place = (self._topic, partition)
        reader = record_reader(self._config, place, self.starts[partition], end, topic_id=self._topic_id)
        self._open[partition] = reader
        return reader

    def _ranges(self) -> Iterator[list[Record]]:
        for partition in self.partitions:
            if self.starts[partition] < self.ends[partition]:
                reader = self._reader(partition)
                while not reader.at_end:
                    yield from self._pull(reader, _WAIT_MS)
                self._open.pop(partition).stop()

    def _followed(self) -> Iterator[list[Record]]:
        readers = [self._reader(partition) for partition in self.partitions]
        wait_ms = 0
        while True:
            arrived = False
            for reader in readers:
                for records in self._pull(reader, wait_ms):
                    arrived = True
                    yield records
            wait_ms = 0 if arrived else _POLL_MS if len(readers) > 1 else _WAIT_MS

    def _pull(self, reader: "RangeReader", timeout_ms: int) -> Iterator[list[Record]]:
        records = read_records(self._topic, reader, timeout_ms)
        if records:
            yield records


def record_reader(
    config: Mapping[str, str],
    place: tuple[str, int],
    start: int,
    end: int | None,
    *,
    topic_id: str = "",
    max_rows: int = 10_000,
) -> "RangeReader":
    """Give a reader of a partition from `start` up to `end`, or without an end, for `read_records`. Raises `LogError`."""
    from pylog_spark._native import RangeReader

    stop = start if end is None else end
    with translated():
        return RangeReader(
            config, *place, start, stop, _COLUMNS, topic_id=topic_id, max_rows=max_rows, follow=end is None
        )


def read_records(topic: str, reader: "RangeReader", timeout_ms: int) -> list[Record]:
    """Give the next records of `reader`; an empty list when none come within `timeout_ms`. Raises `LogError`."""
    import pyarrow as pa

    with translated():
        batch = reader.next_batch(timeout_ms)
    return [] if batch is None else _records(topic, pa.record_batch(batch))


def _records(topic: str, batch: "pa.RecordBatch") -> list[Record]:
    keys, values, partitions, offsets = (batch.column(name).to_pylist() for name in _COLUMNS[:4])
    micros = batch.column("timestamp").cast("int64").to_pylist()
    types = batch.column("timestampType").to_pylist()
    headers = batch.column("headers").to_pylist()
    records = []
    for i, offset in enumerate(offsets):
        pairs = tuple((header["key"], header["value"]) for header in headers[i] or ())
        stamp = -1 if micros[i] is None else micros[i] // 1000
        records.append(Record(topic, partitions[i], offset, stamp, types[i], keys[i], values[i], pairs))
    return records
