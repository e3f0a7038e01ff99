"""What the client's tests share: Arrow batches in, rows out, a proxy that loses connections."""

import contextlib
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

ALL_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def values_batch(values: Iterable[bytes | None], **columns: pa.Array) -> pa.RecordBatch:
    """A record batch with a `value` column and others."""
    return pa.record_batch({"value": pa.array(values, pa.binary()), **columns})


def write(config: Mapping[str, str], topic: str | None, *batches: pa.RecordBatch) -> dict[str, Any]:
    """Write and flush; the result of the flush."""
    from pylog_spark._native import RecordWriter

    writer = RecordWriter(config, topic)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.flush()
    finally:
        writer.close()


def read(
    config: Mapping[str, str],
    topic: str,
    partition: int,
    start: int,
    end: int,
    columns: Sequence[str] = ALL_COLUMNS,
    **options: Any,
) -> pa.Table:
    """All rows of a range, through the Arrow stream."""
    from pylog_spark._native import RangeReader

    reader = RangeReader(config, topic, partition, start, end, columns, **options)
    return pa.RecordBatchReader.from_stream(reader).read_all()


def values_of(config: Mapping[str, str], topic: str, partition: int, end: int) -> list[bytes]:
    """The values of a partition from its start."""
    return read(config, topic, partition, 0, end, ["value"])["value"].to_pylist()


class LossyProxy:
    """Forwards connections to an address and drops each one after a number of bytes from the client.

    Parameters
    ----------
    port : int
        Where the broker listens; the proxy's own is `port` of the object.
    bytes_per_connection : int
        Bytes from the client after which both sides are closed, in the middle of a request or before its answer.
    """

    def __init__(self, port: int, bytes_per_connection: int) -> None:
        self._target = port
        self._budget = bytes_per_connection
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.dropped = 0

    def aim(self, port: int) -> None:
        """Forward new connections to another port."""
        self._target = port

    def __enter__(self) -> "LossyProxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._up, args=(client, broker), daemon=True).start()
            threading.Thread(target=self._down, args=(broker, client), daemon=True).start()

    def _up(self, client: socket.socket, broker: socket.socket) -> None:
        left = self._budget
        try:
            while left > 0 and (data := client.recv(min(left, 65536))):
                left -= len(data)
                broker.sendall(data)
            self.dropped += left <= 0
        except OSError:
            pass
        _close(client, broker)

    def _down(self, broker: socket.socket, client: socket.socket) -> None:
        try:
            while data := broker.recv(65536):
                client.sendall(data)
        except OSError:
            pass
        _close(client, broker)


def _close(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
