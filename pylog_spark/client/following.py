"""Records of a topic as Arrow batches, as they arrive.

No group is joined and no offset committed: `BatchStream.offsets` says where to go on. Each partition has a connection of its own and native threads
that read ahead. A stream belongs to one thread at a time, but `close` may be called by any.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import Place, Places
from pylog_spark.client.pulling import Pull
from pylog_spark.client.typed import FormatOptions, read_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

#: How long all of several partitions are waited for, one after the other, before the first one is looked at again.
_ROUND_MS = 20
#: How long iteration waits at a time; Ctrl-C and `close` do not wait so long.
_WAIT_S = 60.0


class BatchStream:
    """The batches of a topic; an iterator. Made by `follow`.

    Each batch has records of one partition, in the order of their offsets.
    """

    def __init__(self, pulls: Mapping[int, Pull], schema: pa.Schema, timeout_s: float | None) -> None:
        self.schema = schema
        self.timeout_s = timeout_s
        self._pulls = pulls
        self._turns = deque(pulls)
        self._is_closed = False

    @property
    def offsets(self) -> dict[int, int]:
        """Where each partition is read on: all records before were given. A `start` of a later `follow`."""
        return {partition: pull.next_offset for partition, pull in self._pulls.items()}

    @property
    def at_end(self) -> bool:
        """Whether no more will come, because it was closed."""
        return self._is_closed

    def poll(self, timeout_s: float) -> pa.RecordBatch | None:
        """Give the next batch.

        Parameters
        ----------
        timeout_s : float
            Seconds; 0 gives what is there.

        Returns
        -------
        pyarrow.RecordBatch or None
            None when no record came in time, or the stream is closed.

        Raises
        ------
        LogError
            Records are gone that were to be read, or brokers are.
        """
        until = time.monotonic() + timeout_s
        wait_ms = 0
        while not self._is_closed:
            for _ in range(len(self._turns)):
                # Whoever gave the last batch comes last now.
                partition = self._turns[0]
                self._turns.rotate(-1)
                batch = self._pulls[partition].poll(wait_ms)
                if batch is not None:
                    return batch
            left_ms = (until - time.monotonic()) * 1000
            if left_ms <= 0:
                break
            wait_ms = max(1, int(left_ms if len(self._turns) == 1 else min(left_ms, _ROUND_MS / len(self._turns))))
        return None

    def __iter__(self) -> BatchStream:
        return self

    def __next__(self) -> pa.RecordBatch:
        last = time.monotonic()
        while not self._is_closed:
            left = _WAIT_S if self.timeout_s is None else last + self.timeout_s - time.monotonic()
            batch = self.poll(max(left, 0))
            if batch is not None:
                return batch
            if self.timeout_s is not None and left <= 0:
                break
        raise StopIteration

    def __enter__(self) -> BatchStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Iteration ends, also where another thread waits in it."""
        if self._is_closed:
            return
        self._is_closed = True
        for pull in self._pulls.values():
            pull.close()
            pull.say_left_out()


def follow(
    bootstrap_servers: str,
    topic: str,
    *,
    start: Place = "latest",
    timeout_s: float | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    config: Mapping[str, str] | None = None,
    **formats: Unpack[FormatOptions],
) -> BatchStream:
    """Follow a topic: what it has from a place on, and then what is written, as it comes.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    topic : str
        The topic to read.
    start : str, int, datetime or mapping of int to int
        Where to begin, as in `read_range`: ``latest`` is behind the last record that there is now.
    timeout_s : float, optional
        Iteration ends when no record has come for so many seconds; without it, it goes on until the stream is closed. It may be gone on
        with afterwards.
    partitions : sequence of int, optional
        The partitions to read; all that there are now when not given. Those that the topic gets later are not read.
    columns : sequence of str, optional
        As in `read_range`.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names, such as ``isolation.level``.
    **formats
        How keys and values become typed columns, as in `read_range`.

    Returns
    -------
    BatchStream
        An iterator of ``pyarrow.RecordBatch``, to be closed.

    Raises
    ------
    LogError
        As `read_range`; while batches are read, when records are gone that were to be read, or the topic is.

    Examples
    --------
    >>> from pylog_spark.client import follow
    >>> with follow("127.0.0.1:9092", "events", value_format="json", schema="id bigint") as batches:  # doctest: +SKIP
    ...     for batch in batches:
    ...         print(batch["id"])
    """
    wanted = read_columns(columns, formats)
    settings = {**(config or {}), "bootstrap.servers": bootstrap_servers}
    with Admin(bootstrap_servers, config) as admin:
        places = Places(admin, topic, partitions, settings.get("isolation.level", "read_uncommitted"))
        starts = places.offsets(start)
    if not places.partitions:
        raise LogError("INVALID_ARGUMENT", "No partition is asked for: leave partitions out to read all of them.")
    pulls = {
        partition: Pull(settings, [(topic, partition, begin, begin, places.topic_id)], wanted, follow=True)
        for partition, begin in starts.items()
    }
    return BatchStream(pulls, wanted.schema, timeout_s)
