"""One native reader that is asked for its next batch, and may be ended by another thread while it is waited for.

`poll` and what it changes belong to one thread at a time; `close` may be called by any.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pylog_spark.client.errors import LogError, translated
from pylog_spark.typed.readers import UNKNOWN_WRITERS, log_left_out

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import RangeReader
    from pylog_spark.client.typed import Columns

#: (topic, partition, first offset, end, the topic's id).
Span = tuple[str, int, int, int, str]


class Pull:
    """Records of ranges, batch by batch.

    Parameters
    ----------
    settings : mapping of str to str
        Of the native client.
    spans : sequence of Span
        Ranges, read in this order.
    columns : Columns
        What is read of records.
    follow : bool
        Whether the last range has no end.
    local_reads : bool
        As in `pylog_spark.client.read_range`.

    Raises
    ------
    LogError
        A setting cannot be used.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        spans: Sequence[Span],
        columns: Columns,
        *,
        follow: bool = False,
        local_reads: bool = False,
    ) -> None:
        self._settings, self._left, self._columns = settings, list(spans), columns
        self._follow, self._local_reads = follow, local_reads
        self._decoder, self._absent = columns.decoder(), 0
        self._closed = threading.Event()
        self._reader = self._opened() if self._left else None

    @property
    def at_end(self) -> bool:
        """Whether there is nothing more to read."""
        return self._closed.is_set() or self._reader is None or self._reader.at_end

    @property
    def next_offset(self) -> int:
        """Everything of the range that is being read before this offset was handed out."""
        if self._reader is None:
            return 0
        return max(self._reader.next_offset, self._left[self._reader.range_index][2])

    def say_left_out(self) -> None:
        """Say in Python's log how many records were left out; once, at the end."""
        log_left_out(self._decoder)

    def poll(self, timeout_ms: int) -> pa.RecordBatch | None:
        """Give the next batch; None when none comes within `timeout_ms`, at the end, and after `close`. Raises `LogError`."""
        import pyarrow as pa

        from pylog_spark._native import NativeError

        while self._reader is not None and not self._closed.is_set():
            try:
                found = self._reader.next_batch(timeout_ms)
            except NativeError as error:
                kind, message = error.args
                if self._closed.is_set():
                    return None
                if kind != UNKNOWN_WRITERS:
                    raise LogError(kind, message) from error
                self._reopen()
                continue
            if found is None:
                return None
            batch = pa.record_batch(found)
            if batch.num_rows:
                return pa.RecordBatch.from_arrays(batch.columns, schema=self._columns.schema)
        return None

    def close(self) -> None:
        """Stop reading ahead, and a `poll` that waits."""
        self._closed.set()
        if self._reader is not None:
            self._reader.stop()

    def _reopen(self) -> None:
        """Read on from where the reader ended, once the schemas that it missed are known."""
        assert self._reader is not None
        index = self._reader.range_index
        topic, partition, _, end, topic_id = self._left[index]
        self._left = [(topic, partition, self.next_offset, end, topic_id), *self._left[index + 1 :]]
        self._reader.stop()
        self._absent = self._columns.look_up(self._decoder, self._absent)
        self._reader = self._opened()
        if self._closed.is_set():
            self._reader.stop()

    def _opened(self) -> RangeReader:
        from pylog_spark._native import RangeReader

        (topic, partition, begin, end, topic_id), *others = self._left
        with translated():
            return RangeReader(
                self._settings,
                topic,
                partition,
                begin,
                end,
                self._columns.names,
                topic_id=topic_id,
                then=others,
                follow=self._follow,
                local_reads=self._local_reads,
                typed=self._decoder,
            )
