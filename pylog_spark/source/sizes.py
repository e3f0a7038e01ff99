"""How large the new records of a stream are, so that few records which are much work do not share a task.

An estimate: of each topic one partition's first new batch is read, and its size divided by its number of records. How large the records
of a micro-batch really are is not known before they are read. One fetch a minute for each topic that has several ranges which may share
a task. Not thread-safe.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError
from pylog_spark.offsets.ranges import OffsetRange
from pylog_spark.offsets.visible import Wish

if TYPE_CHECKING:
    from pylog_spark.source.log import Log

_log = logging.getLogger("pylog_spark")

#: Seconds for which an estimate is used.
BELIEVED_S = 60.0
#: Most topics that are estimated for one micro-batch; the others, which have less to read, wait for the next ones.
LOOKS_MAX = 10
_TOPICS_MAX = 1_000


class RecordSizes:
    """Remembers how large the records of each topic are.

    Parameters
    ----------
    log : Log
        Asks the brokers for batches.
    monotonic_s : callable
        The clock, in seconds, by which estimates expire.
    """

    def __init__(self, log: Log, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._monotonic_s = monotonic_s
        #: Topic -> when it was estimated, and the stored bytes of a record; 0 when that is not known.
        self._known: dict[str, tuple[float, float]] = {}

    def of(self, ranges: Iterable[OffsetRange]) -> Mapping[str, float]:
        """Give the stored bytes of a record of each topic of `ranges`; topics that are not known yet are left out."""
        largest: dict[str, OffsetRange] = {}
        for each_range in ranges:
            known = largest.setdefault(each_range.partition.topic, each_range)
            if each_range.size > known.size:
                largest[each_range.partition.topic] = each_range
        now_s = self._monotonic_s()
        old = [topic for topic in largest if topic not in self._known or now_s - self._known[topic][0] > BELIEVED_S]
        for topic in sorted(old, key=lambda topic: -largest[topic].size)[:LOOKS_MAX]:
            if len(self._known) >= _TOPICS_MAX:
                self._known.clear()
            self._known[topic] = (now_s, self._look(largest[topic]))
        return {topic: self._known[topic][1] for topic in largest if topic in self._known}

    def _look(self, offset_range: OffsetRange) -> float:
        try:
            (taken,) = self._log.advance([Wish(offset_range.partition, offset_range.start, offset_range.end, 1, None)])
        except PylogError as error:
            # If the error persists, the read itself reports it.
            _log.debug("The size of the records of %s is not known: %s", offset_range.partition, error.sentence)
            return 0.0
        return taken.size / taken.records if taken.records else 0.0
