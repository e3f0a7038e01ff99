"""A query's progress in a consumer group of its name, right at the end of each batch.

The option ``kafka.group.id`` does the same from within the source, which needs no listener, but learns that a batch is finished only when the
next one is planned. A listener hears it at once, of the last batch before a stop and of ``Trigger.AvailableNow``, too.

Spark calls the methods of a listener in one thread; `wait` may be called by any.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from pylog_spark.listener.progress import BatchProgress
from pylog_spark.offsets import Offsets
from pylog_spark.offsets.position import Position
from pylog_spark.source.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

#: Ended runs that `wait` remembers; of earlier ones it says that they are shown.
_ENDED_MAX = 1_000


class GroupMirror(StreamingQueryListener):
    """Commits the offsets of each finished batch to the consumer group that has the query's name, for Kafka's tools.

    A query without a name has a group with its id, which its checkpoint keeps. The offsets are for display only: they are never read back, and
    no error here stops or slows a query. The first failure is logged as a warning, and the next attempt is half a minute later, or when
    the query ends. Queries of the same name share a group, so give each a name of its own. What a query reads from several brokers at once
    is one group there: add a listener for each cluster, with the names of the queries that read from it.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT`` of the brokers from which the queries read, several separated by commas; as the driver reaches them (over Spark
        Connect: the client).
    config : mapping of str to str, optional
        Settings of the client by Kafka's names, for secured brokers.
    queries : collection of str, optional
        The names (or ids) of the queries that are shown; all without it.
    leave_out : collection of str
        The names (or ids) of queries that are not shown.
    prefix : str
        Begins the name of each group.

    Examples
    --------
    >>> spark.streams.addListener(GroupMirror("127.0.0.1:9092"))  # doctest: +SKIP
    """

    def __init__(
        self,
        bootstrap_servers: str,
        config: Mapping[str, str] | None = None,
        *,
        queries: Collection[str] | None = None,
        leave_out: Collection[str] = (),
        prefix: str = "",
    ) -> None:
        self._config = {**(config or {}), "bootstrap.servers": bootstrap_servers}
        self._queries = None if queries is None else frozenset(queries)
        self._leave_out = frozenset(leave_out)
        self._prefix = prefix
        self._runs: dict[str, _Run] = {}
        self._ended: dict[str, bool] = {}
        self._changed = threading.Condition()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to show yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Commit the offsets at the end of the batch."""
        batch = BatchProgress.of_json(event.progress.json)
        offsets = _ends(batch)
        if not offsets or not self._shows(batch):
            return
        run = self._runs.get(batch.run_id)
        if run is None:
            run = self._runs[batch.run_id] = _Run(Progress(f"{self._prefix}{batch.query}", self._config))
        run.last = Position(offsets)
        run.is_shown = run.progress.show(run.last.to_document())

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Try again what could not be committed."""
        run = self._runs.get(str(event.runId))
        if run is not None and not run.is_shown:
            run.is_shown = run.progress.show(run.last.to_document())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Try once more what could not be committed, and close the connections."""
        run_id = str(event.runId)
        run = self._runs.pop(run_id, None)
        if run is not None:
            run.is_shown = run.is_shown or run.progress.show(run.last.to_document(), at_once=True)
            run.progress.close()
        with self._changed:
            while len(self._ended) >= _ENDED_MAX:
                del self._ended[next(iter(self._ended))]
            self._ended[run_id] = run is None or run.is_shown
            self._changed.notify_all()

    def wait(self, query: StreamingQuery, timeout_s: float = 10.0) -> bool:
        """Wait until the group shows all batches of a query that has ended: Spark tells listeners a moment after ``awaitTermination`` and
        ``stop`` have returned, so a program that ends at once needs it.

        Parameters
        ----------
        query : StreamingQuery
            A query that was started after this listener was added, and has ended.
        timeout_s : float
            The longest wait in seconds.

        Returns
        -------
        bool
            Whether the group shows them; False when the brokers refused, or Spark has not said in this time that the query ended.
        """
        end, run_id = time.monotonic() + timeout_s, str(query.runId)
        with self._changed:
            while run_id not in self._ended:
                left_s = end - time.monotonic()
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
            return self._ended[run_id]

    def _shows(self, batch: BatchProgress) -> bool:
        names = {batch.query, batch.query_id}
        return not names & self._leave_out and (self._queries is None or bool(names & self._queries))


class _Run:
    """A query since its start."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.last = Position({})
        self.is_shown = False


def _ends(batch: BatchProgress) -> Offsets:
    """Where all sources are; of a partition that several read, the least."""
    ends: Offsets = {}
    for source in batch.sources:
        for partition, offset in (source.end.offsets if source.end else {}).items():
            ends[partition] = min(offset, ends.get(partition, offset))
    return ends
