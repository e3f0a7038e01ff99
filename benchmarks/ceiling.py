"""A Python data source that does nothing: what Spark itself needs for a source or sink in Python, the ceiling of any.

It hands over the same ready-made Arrow batch again and again, or takes batches and forgets them; with the option `drain` it first sends
their bytes, as they lie in memory, to a process that drops them. As a stream it is as many
rows on in each trigger as the option `trigger` says, without asking anybody.
"""

import socket
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from benchmarks.drain import connected

_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
_BATCH_BYTES = 1_500_000
_BATCH_ROWS_MAX = 10_000


class CeilingSource(DataSource):
    """Options: `bytes` of a value, `tasks`, and `rows` (of a batch read) or `trigger` (rows of each micro-batch)."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> str:
        return _COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(_Pieces(schema, self.options), int(self.options["rows"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return CeilingStreamReader(_Pieces(schema, self.options), int(self.options["trigger"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        drain = self.options.get("drain")
        return SendingWriter(drain) if drain else CeilingWriter()


class _Rows(InputPartition):
    """As many rows as one task hands over."""

    def __init__(self, rows: int) -> None:
        super().__init__(None)
        self.rows = rows


class _Pieces:
    """What both readers share: how rows are spread over tasks, and the batches."""

    def __init__(self, schema: StructType, options: Any) -> None:
        self._columns, self._bytes, self._tasks = schema.names, int(options["bytes"]), int(options["tasks"])

    def spread(self, rows: int) -> list[InputPartition]:
        return [_Rows(rows // self._tasks) for _ in range(self._tasks)]

    def batches(self, left: int) -> Iterator[pa.RecordBatch]:
        rows = min(left, _BATCH_ROWS_MAX, _BATCH_BYTES // (self._bytes + 50))
        whole = {
            "key": pa.nulls(rows, pa.binary()),
            "value": pa.array([b"x" * self._bytes] * rows, pa.binary()),
            "topic": pa.array(["ceiling"] * rows, pa.string()),
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.array([1_700_000_000_000_000] * rows, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * rows, pa.int32()),
        }
        batch = pa.RecordBatch.from_pydict({column: whole[column] for column in self._columns})
        while left > 0:
            yield batch.slice(0, min(rows, left))
            left -= rows


class CeilingReader(DataSourceReader):
    """`rows` rows."""

    def __init__(self, pieces: _Pieces, rows: int) -> None:
        self._pieces, self._rows = pieces, rows

    def partitions(self) -> list[InputPartition]:
        return self._pieces.spread(self._rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        return self._pieces.batches(partition.rows)


class CeilingStreamReader(DataSourceStreamReader):
    """`trigger` more rows in every trigger, for ever."""

    def __init__(self, pieces: _Pieces, trigger: int) -> None:
        self._pieces, self._trigger = pieces, trigger

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"rows": start["rows"] + self._trigger}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self._pieces.spread(end["rows"] - start["rows"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        return self._pieces.batches(partition.rows)


class CeilingWriter(DataSourceArrowWriter):
    """Receives and forgets."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class SendingWriter(DataSourceArrowWriter):
    """Sends the bytes of all rows to the drain at `address`, and waits until they are read."""

    def __init__(self, address: str) -> None:
        self._address = address

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with connected(self._address) as connection:
            for batch in iterator:
                for buffer in (buffer for column in batch.columns for buffer in column.buffers() if buffer):
                    connection.sendall(buffer)
            connection.shutdown(socket.SHUT_WR)
            if not connection.recv(1):
                raise RuntimeError("the drain has ended")
        return WriterCommitMessage()
