"""Finds out when an open transaction holds a reader of committed data back, and reports it.

Such a reader ends at the last stable offset and reads nothing behind it, without an error and without a lag. So its driver
looks at the high watermark, once in a batch and at most once a minute in a stream. Where the high watermark is further on, the driver
calls `release`, which ends writes whose drivers died (the caller passes it, because this package does not know the sink), and warns of
transactions that stay open for long. Nothing here fails the query.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from pylog_spark.errors import PylogError
from pylog_spark.offsets import Offsets, TopicPartition
from pylog_spark.options import ReadOptions
from pylog_spark.source.log import Log

_log = logging.getLogger("pylog_spark")

#: Takes the client's settings and the partitions that are held back. Returns how many writes it ended, and for each transaction that
#: still holds a partition back its name -> a clause that says what to do.
Release = Callable[[Mapping[str, str], Collection[TopicPartition]], tuple[int, Mapping[str, str]]]

#: Seconds between two checks of a stream.
LOOK_S = 60.0
#: Seconds before the same warning is repeated.
REPEAT_S = 600.0


class HeldBack:
    """Checks for one query whether transactions hold it back.

    Parameters
    ----------
    options : ReadOptions
        The options of the query.
    log : Log
        Asks the brokers about the query's partitions.
    release : callable or None
        See `Release`; without it nothing is checked.
    monotonic_s : callable
        The clock, in seconds.
    """

    def __init__(
        self,
        options: ReadOptions,
        log: Log,
        release: Release | None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = options.client
        self._log = log
        self._release = release if options.client.get("isolation.level") == "read_committed" else None
        self._monotonic_s = monotonic_s
        self._looked_s = -math.inf
        self._warned: tuple[frozenset[str], float] = (frozenset(), -math.inf)
        self._stood: Offsets = {}

    def look(self, partitions: Collection[TopicPartition]) -> bool:
        """Check, unless the last check was less than `LOOK_S` ago. Returns whether a write was ended, so that there may be more to
        read now."""
        if self._release is None or self._monotonic_s() - self._looked_s < LOOK_S:
            return False
        self._looked_s = self._monotonic_s()
        try:
            stable = self._log.latest(partitions)
            high = self._log.latest(partitions, "read_uncommitted")
            behind = sorted(each for each in stable if stable[each] < high[each])
            return bool(behind) and self._look_behind(self._release, behind, stable, high)
        except PylogError as error:
            _log.debug("Cannot find out whether a transaction holds this query back: %s", error.sentence)
            return False

    def _look_behind(self, release: Release, behind: Sequence[TopicPartition], stable: Offsets, high: Offsets) -> bool:
        ended, holders = release(self._client, behind)
        stands = [each for each in behind if self._stood.get(each) == stable[each]]
        self._stood = {each: stable[each] for each in behind}
        if not holders and stands and not ended:
            first = f"{stands[0].topic}:{stands[0].partition}"
            holders = {
                str(
                    stands[0]
                ): "a transaction that no coordinator reports as open for that long: pylog transaction producers "
                f"{first} shows where it begins, pylog transaction abort ends it"
            }
        if holders:
            self._warn(stands or behind, stable, high, holders)
        return ended > 0

    def _warn(
        self, behind: Sequence[TopicPartition], stable: Offsets, high: Offsets, holders: Mapping[str, str]
    ) -> None:
        names, at_s = self._warned
        now_s = self._monotonic_s()
        if holders.keys() <= names and now_s - at_s < REPEAT_S:
            return
        self._warned = (frozenset(holders), now_s)
        first = behind[0]
        more = f" (and {len(behind) - 1} more partitions)" if len(behind) > 1 else ""
        _log.warning(
            "This query reads %s%s only up to the last stable offset %d, and the log goes on to %d: the records between wait for %s",
            first,
            more,
            stable[first],
            high[first],
            "; and for ".join(holders[name] for name in sorted(holders)),
        )
