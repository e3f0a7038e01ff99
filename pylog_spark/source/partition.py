"""One task's reading: an offset range of one log partition as Arrow batches. Runs in Spark's Python workers.

Fetching and decoding happen in native threads, started at the first pull and ended when the iterator is dropped; no
Python object is made per record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from pylog_spark.errors import LOSS_KINDS, PylogError, from_native, native, translated
from pylog_spark.offsets.limits import EARLIEST
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.schema import arrow_schema
from pylog_spark.source.loss import report_loss

if TYPE_CHECKING:
    import pyarrow as pa


class RangePartition(InputPartition):
    """Offsets ``[start, end)`` of one log partition, as Spark carries them to a task.

    Parameters
    ----------
    offsets : OffsetRange
        What to read.
    topic_id : str
        Id of the topic when the range was planned, or "" when the brokers have none.
    """

    def __init__(self, offsets: OffsetRange, topic_id: str) -> None:
        super().__init__(None)
        self.topic, self.partition = offsets.partition
        self.start, self.end = offsets.start, offsets.end
        self.topic_id = topic_id


@dataclass(frozen=True)
class RangeSource:
    """How tasks read: plain values, pickled with the reader.

    Attributes
    ----------
    client : mapping
        Settings of the native client.
    columns : tuple of str
        Columns to build, in Spark's order.
    nullable : mapping
        Whether Spark's schema lets each of them be null.
    batch_bytes : int
        Size at which a batch is complete.
    fail_on_data_loss : bool
        What to do about records that vanished after the plan was made.
    """

    client: Mapping[str, str]
    columns: tuple[str, ...]
    nullable: Mapping[str, bool]
    batch_bytes: int
    fail_on_data_loss: bool

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the records of `partition`; of Spark's placeholder for "no partitions", none."""
        if not isinstance(partition, RangePartition):
            return
        start = partition.start
        while start < partition.end:
            reader = self._open(partition, start)
            try:
                yield from self._batches(reader)
                return
            except _Lost as lost:
                start = self._after_loss(partition, max(start, reader.next_offset), lost)
            finally:
                reader.stop()

    def _open(self, partition: RangePartition, start: int) -> Any:
        with translated():
            return native().RangeReader(
                dict(self.client),
                partition.topic,
                partition.partition,
                start,
                partition.end,
                list(self.columns),
                topic_id=partition.topic_id,
                batch_bytes=self.batch_bytes,
            )

    def _batches(self, reader: Any) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(self.columns, self.nullable)
        stream = pa.RecordBatchReader.from_stream(reader)
        while True:
            try:
                batch = stream.read_next_batch()
            except StopIteration:
                return
            except Exception as error:
                if reader.error is None:
                    raise
                kind, message = reader.error
                del error  # pyarrow's exception says the same with less
                raise (_Lost(kind, message) if kind in LOSS_KINDS else from_native(kind, message)) from None
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def _after_loss(self, partition: RangePartition, wanted: int, lost: _Lost) -> int:
        """Give the offset to go on from, or the partition's end when nothing is left. Raises when loss is an error."""
        condition = from_native(lost.kind, "").condition
        place = f"{partition.topic}-{partition.partition}"
        report_loss(self.fail_on_data_loss, f"{place}, offset {wanted}: {lost.message.rstrip('.')}", condition)
        if condition == "PYLOG_TOPIC_RECREATED":
            return partition.end
        try:
            with translated():
                client = native().Client(dict(self.client))
                try:
                    ((_, _, earliest, _),) = client.list_offsets([(partition.topic, partition.partition, EARLIEST)])
                finally:
                    client.close()
        except PylogError as error:
            if error.condition != "PYLOG_UNKNOWN_TOPIC":
                raise
            return partition.end
        # The log now ends before the offset wanted: nothing of this range is left.
        return int(earliest) if earliest > wanted else partition.end


class _Lost(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message
