"""Small micro-batches that need no Python worker: the driver reads them, and hands their rows to Spark.

A task in a Python worker costs Spark some 30 ms before its first record. Spark's runner of Python sources has another way, made for
`SimpleDataSourceStreamReader`: after ``partitions()`` it asks a reader that is a ``_SimpleStreamReaderWrapper`` for ``getCache(start,
end)``, keeps the rows in the block manager, and the one task that reads them runs in the JVM alone (``pyspark/sql/streaming/
python_streaming_source_runner.py``, ``PythonMicroBatchStream``). So a reader passes for such a wrapper between the end of
``partitions()`` and ``getCache()``, and is itself at all other times: a wrapper would have no limits, no Trigger.AvailableNow and no
``reportLatestOffset``.

`Prefetcher` decides and reads, `Handover` keeps what was read until Spark asks for it. When anything is in doubt the tasks read: more
bytes than the bound, an error, a broker that does not answer soon, a Spark that does not ask. A task that finds no block (it was lost)
reads the same ranges in a worker. Not thread-safe: Spark calls a reader from one thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError, from_native, native, translated
from pylog_spark.source.partition import RangePartition, RangeSource
from pylog_spark.typed.readers import UNKNOWN_WRITERS, log_left_out

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import Client, TypedRead

_log = logging.getLogger("pylog_spark")

#: Bytes of a row that is not known yet: at least so many, so that a micro-batch of far more offsets is not tried.
_FEWEST_ROW_BYTES = 16.0
#: How long the driver waits for brokers; the tasks, which then read, wait for `kafkaConsumer.pollTimeoutMs`.
_TIMEOUT_MS = 5_000
#: How often schemas of writers are looked up for a micro-batch.
_LOOK_UPS = 5
_DEADLINES = ("default.api.timeout.ms", "request.timeout.ms", "socket.connection.setup.timeout.ms")


def spark_wrapper() -> type | None:
    """Give the class that Spark's runner asks for prefetched rows; None where this Spark has none."""
    try:
        wrapper = import_module("pyspark.sql.datasource_internal")._SimpleStreamReaderWrapper
    except (ImportError, AttributeError):
        return None
    return wrapper if isinstance(wrapper, type) and hasattr(wrapper, "getCache") else None


class Prefetcher:
    """Reads a micro-batch on the driver if it is small: all its log partitions at once, over connections of its own that stay open.

    Parameters
    ----------
    source : RangeSource
        How tasks read.
    most_bytes : int
        The largest micro-batch that is read here, in bytes of Arrow data; 0 leaves all to the tasks.
    """

    def __init__(self, source: RangeSource, most_bytes: int) -> None:
        self._source = source
        self._most_bytes = most_bytes
        #: Bytes of an offset in the last batch that was read here, or tried.
        self._offset_bytes = _FEWEST_ROW_BYTES
        self._client: Client | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None}

    def read(self, task: RangePartition) -> list[pa.RecordBatch] | None:
        """Give all rows of `task`; None when the tasks are to read."""
        offsets = sum(part.size for part, _ in task.ranges)
        if offsets == 0:
            return None
        if offsets * self._offset_bytes > self._most_bytes:
            # Rows may have become smaller: after some batches one is tried again.
            self._offset_bytes = max(_FEWEST_ROW_BYTES, self._offset_bytes / 2)
            return None
        try:
            batches, rows, size = self._read_at_once(task)
        except PylogError as error:
            # If the error persists, the tasks raise it, or pass what is lost.
            _log.debug("The driver leaves a micro-batch to the tasks: %s", error.sentence)
            return None
        if batches is None:
            self._offset_bytes = size / max(1, rows)
            return None
        self._offset_bytes = max(_FEWEST_ROW_BYTES, size / offsets)
        return self._source.as_planned(batches)

    def _read_at_once(self, task: RangePartition) -> tuple[Sequence[Any] | None, int, int]:
        tries, absent = 0, 0
        while True:
            tries += 1
            try:
                return self._try_read_at_once(task)
            except _UnknownWriters as unknown:
                if tries > _LOOK_UPS:
                    raise
                absent = self._source.look_up(unknown.typed, absent)

    def _try_read_at_once(self, task: RangePartition) -> tuple[Sequence[Any] | None, int, int]:
        source = self._source
        # A read that is tried again begins anew: nothing that was kept or counted before counts.
        typed = source.native_typed()
        bad = source.bad_records(typed, task, _with_deadlines(source.client))
        with translated(lambda kind, message: _known_writers(kind, message, typed)):
            if self._client is None:
                self._client = native().Client(_with_deadlines(source.client))
            read = self._client.read_at_once(
                [(*offsets.partition, offsets.start, offsets.end, topic_id) for offsets, topic_id in task.ranges],
                list(source.columns),
                self._most_bytes,
                batch_bytes=max(1, min(source.batch_bytes, self._most_bytes)),
                typed=typed,
                **source.wanted.native(),
            )
        if read[0] is not None:
            log_left_out(typed)
            if bad is not None:
                bad.finish()
        return read

    def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


class Handover:
    """The rows of one micro-batch, from ``partitions()`` until Spark asks for them.

    Parameters
    ----------
    wrapper : type or None
        What `spark_wrapper` gives.
    """

    def __init__(self, wrapper: type | None) -> None:
        self._wrapper = wrapper
        self._waiting: tuple[Mapping[str, Any], Mapping[str, Any], Sequence[pa.RecordBatch]] | None = None

    @property
    def is_possible(self) -> bool:
        """Whether Spark asks for rows. Nothing waits any more when it did not."""
        if self._waiting is not None:
            self._waiting = self._wrapper = None
            _log.warning(
                "This version of Spark does not take rows from the driver: small micro-batches of this query are read by tasks from now on."
            )
        return self._wrapper is not None

    @property
    def passes_for(self) -> type | None:
        """The class that the reader passes for while rows wait."""
        return self._wrapper if self._waiting is not None else None

    def offer(self, start: Mapping[str, Any], end: Mapping[str, Any], batches: Sequence[pa.RecordBatch]) -> None:
        """Keep the rows between two positions until Spark asks for them."""
        self._waiting = (start, end, batches)

    def take(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[pa.RecordBatch] | None:
        """Give the rows between two positions, once; None when there are no such."""
        waiting, self._waiting = self._waiting, None
        return iter(waiting[2]) if waiting is not None and waiting[:2] == (start, end) else None


class _UnknownWriters(PylogError):
    """Records were written with schemas that are to be looked up."""

    typed: TypedRead | None = None


def _known_writers(kind: str, message: str, typed: TypedRead | None) -> PylogError:
    if kind != UNKNOWN_WRITERS:
        return from_native(kind, message)
    error = _UnknownWriters("PYLOG_BROKER", message)
    error.typed = typed
    return error


def _with_deadlines(client: Mapping[str, str]) -> dict[str, str]:
    """Settings of a client that gives up soon."""
    return {**client, **{name: str(min(_TIMEOUT_MS, int(client.get(name, _TIMEOUT_MS)))) for name in _DEADLINES}}
