"""Writing records and frames, for programs without Spark. (Spark writes whole Arrow batches: see `sink`.)

Records are gathered into Arrow batches and handed to the native writer, which partitions, compresses, sends and retries.
Not thread-safe.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pylog_spark.audit.counting import write_counts
from pylog_spark.audit.document import Audit
from pylog_spark.client.errors import translated
from pylog_spark.client.typed import FormatOptions, is_typed
from pylog_spark.results.decoding import decoded
from pylog_spark.results.writes import FlushResult

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

Headers = Sequence[tuple[str, bytes | None]]

#: Key, value, partition, timestamp in ms, headers.
_Row = tuple[bytes | None, bytes | None, int | None, int | None, Headers]

_ROWS_MAX = 10_000
_BYTES_MAX = 1_000_000


class ArrowStream(Protocol):
    """Whatever gives record batches by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the stream."""


class Producer:
    """Appends records to one topic.

    Keys choose the partition as in Kafka (murmur2); records without a key go to one partition after the other, a batch
    at a time. A record that cannot be delivered raises `LogError` at a later `send`, or at the latest at `flush`.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    topic : str
        The topic to write to.
    config : mapping of str to str, optional
        Kafka's producer settings: ``acks``, ``compression.type``, ``linger.ms``... ``client.id`` names the producer in an audit.
    audit : Audit, optional
        Count the records by windows of their timestamps, and say so in this audit topic (`pylog_spark.audit`): whenever `publish`
        is called, and at the end of a ``with`` block.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        config: Mapping[str, str] | None = None,
        audit: Audit | None = None,
    ) -> None:
        from pylog_spark._native import RecordWriter

        settings = {**(config or {}), "bootstrap.servers": bootstrap_servers}
        with translated():
            self._writer = RecordWriter(settings, topic, count_windows_ms=None if audit is None else audit.window_ms)
        self._audit, self._topic = audit, topic
        self._name = settings.get("client.id", "pylog")
        self._said = 0
        self._rows: list[_Row] = []
        self._bytes = 0

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.publish()
        finally:
            self.close()

    def send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Queue one record. Blocks while the native buffer is full.

        Parameters
        ----------
        value, key : bytes or None
            Value and key; a None value is a tombstone in a compacted topic.
        partition : int, optional
            The partition; chosen by the key when not given.
        timestamp_ms : int, optional
            Milliseconds since 1970; now when not given.
        headers : sequence of (str, bytes or None)
            Headers.
        """
        self._rows.append((key, value, partition, timestamp_ms, headers))
        self._bytes += len(key or b"") + len(value or b"")
        if len(self._rows) >= _ROWS_MAX or self._bytes >= _BYTES_MAX:
            self.hand_over()

    def send_all(self, frame: ArrowStream, **formats: "Unpack[FormatOptions]") -> None:
        """Queue the rows of a frame, without a Python object for each. Blocks while the native buffer is full.

        Parameters
        ----------
        frame : object with ``__arrow_c_stream__``
            A table or record batch of pyarrow, a reader of batches, a frame of polars or pandas, a relation of duckdb. Its columns
            are found by their names: ``value``, and ``key``, ``partition``, ``timestamp`` and ``headers`` where it has them; text or binary,
            timestamps of any unit. Other columns are not written, as by Spark.
        **formats
            How keys and values are encoded, such as ``value_format="json"``: see `FormatOptions`. With ``json``, ``avro`` and ``protobuf`` all columns
            that are not the record's own make the value; the others encode the columns ``key`` and ``value``.

        Raises
        ------
        LogError
            When a column is missing or of another type, a format or schema cannot be used, or an earlier record could not be delivered.
        """
        import pyarrow as pa

        self.hand_over()
        batches = pa.RecordBatchReader.from_stream(frame)
        encoded = None
        if is_typed(formats):
            from pylog_spark.client.encoding import encoder

            encoded = encoder(batches.schema, self._topic, formats)
        for batch in batches:
            rows = batch if encoded is None else encoded(batch)
            with translated():
                self._writer.write(rows)

    def hand_over(self) -> None:
        """Hand the gathered records to the native writer, which sends each full batch. Does not wait for acknowledgements."""
        if self._rows:
            rows, self._rows, self._bytes = self._rows, [], 0
            with translated():
                self._writer.write(record_batch(rows))

    def flush(self) -> FlushResult:
        """Wait until every record is acknowledged. Returns counts and offsets of all records since this producer was made."""
        self.hand_over()
        with translated():
            flushed = decoded(FlushResult, self._writer.flush())
        if self._audit is None or not self._said:
            return flushed
        offsets = {place: span for place, span in flushed.offsets.items() if place[0] != self._audit.topic}
        return FlushResult(flushed.records - self._said, flushed.bytes, offsets)

    def publish(self) -> FlushResult:
        """`flush`, and then say in the audit topic, if there is one, what was written since the last time."""
        flushed = self.flush()
        if self._audit is not None:
            with translated():
                said = write_counts(self._writer, self._audit, self._name)
                self._said += said
                if said:
                    self._writer.flush()
        return flushed

    def close(self) -> None:
        """Close the connections. Records that are not acknowledged yet may be lost."""
        self._writer.close()


def record_batch(rows: Sequence[_Row]) -> "pa.RecordBatch":
    """Give the rows as the native writer takes them."""
    import pyarrow as pa

    keys, values, partitions, stamps, headers = zip(*rows, strict=True)
    columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
    if any(partition is not None for partition in partitions):
        columns["partition"] = pa.array(partitions, pa.int32())
    if any(stamp is not None for stamp in stamps):
        columns["timestamp"] = pa.array(stamps, pa.timestamp("ms", "UTC"))
    if any(headers):
        kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        listed = [[{"key": name, "value": value} for name, value in header] or None for header in headers]
        columns["headers"] = pa.array(listed, kind)
    return pa.record_batch(columns)
