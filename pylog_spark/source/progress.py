"""A stream's progress shown in a consumer group, for Kafka's tools: the offsets of finished batches are committed to the group.

They are never read back, and no error here stops or slows the query. A batch is known to be finished when Spark asks where the next
one may end, as it does at each trigger and at the end of ``Trigger.AvailableNow``; before Spark 4.2, when it plans the next batch that is
not empty. If a query is stopped before that, its last batch is committed to the group when the query starts again, and not earlier:
Spark asks a reader to plan a batch and to stop, but it says neither whether that batch was finished nor where the checkpoint is that
knows. A batch that was committed at the stop might never be finished, and the group's lag of 0 would be wrong. Spark tells a listener
of it (`pylog_spark.listener.GroupMirror`).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pylog_spark.errors import PylogError, native, translated
from pylog_spark.offsets.position import Position, PositionError
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.topics import PartitionResult

if TYPE_CHECKING:
    from pylog_spark._native import Client

_log = logging.getLogger("pylog_spark")

#: Longest wait in ms for one commit, and pause in seconds after a failed one: a coordinator that does not answer costs little time.
COMMIT_MS = 2_000
PAUSE_S = 30.0


class Progress:
    """Commits positions to a consumer group; does nothing without one.

    Parameters
    ----------
    group : str or None
        The group, of the option `kafka.group.id`.
    config : mapping of str to str
        Settings of the client by Kafka's names.
    monotonic_s : callable
        The clock of the pause after a failure.
    """

    def __init__(
        self, group: str | None, config: Mapping[str, str], monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._group = group
        self._config = {
            **config,
            "default.api.timeout.ms": str(COMMIT_MS),
            "request.timeout.ms": str(COMMIT_MS),
        }
        self._monotonic_s = monotonic_s
        self._client: Client | None = None
        self._paused_until_s = 0.0
        self._warned = False
        self._shown: Mapping[str, Any] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_client": None}

    def show(self, end: Mapping[str, Any], *, at_once: bool = False) -> bool:
        """Commit the offsets of a position, unless they are committed already. The first failure is logged as a warning.

        Parameters
        ----------
        end : mapping
            The document of the position.
        at_once : bool
            Also in the pause after a failure.

        Returns
        -------
        bool
            Whether the group has them.
        """
        if self._group is None or end == self._shown:
            return self._group is not None
        if not at_once and self._monotonic_s() < self._paused_until_s:
            return False
        try:
            failed = self._commit(Position.from_document(end))
        except (PylogError, PositionError) as error:
            failed = str(error)
        if not failed:
            self._shown = end
        else:
            self._paused_until_s = self._monotonic_s() + PAUSE_S
            if not self._warned:
                _log.warning("The progress of this query is not shown in the group %r: %s", self._group, failed)
            self._warned = True
        return not failed

    def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _commit(self, position: Position) -> str | None:
        offsets = [(*partition, offset, "") for partition, offset in sorted(position.offsets.items())]
        if not offsets:
            return None
        with translated():
            if self._client is None:
                self._client = native().Client(self._config)
            arguments = json.dumps({"group": self._group, "offsets": offsets})
            results = all_decoded(PartitionResult, self._client.request("alter_group_offsets", arguments))
        return next((str(result.message) for result in results if result.error is not None), None)
