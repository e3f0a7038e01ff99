"""How large the new records of a stream are, so that few records which are much work do not share a task.

An estimate: of each topic the first new batch of one partition is looked at, and its size shared over its records. What a micro-batch
really has nobody knows before it is read. One fetch for each topic and minute, none for a topic that has ranges of one task only.
For one thread.
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

#: How long in seconds a size is believed.
BELIEVED_S = 60.0
#: Topics that are looked at for one micro-batch; the others, which have less to read, come at the next ones.
LOOKS_MAX = 10
_TOPICS_MAX = 1_000


class RecordSizes:
    """Remembers how large the records of each topic are.

    Parameters
    ----------
    log : Log
        Where the batches are.
    monotonic_s : callable
        The clock by which sizes grow old.
    """

    def __init__(self, log: Log, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._monotonic_s = monotonic_s
        #: By topic: when it was looked at, and the stored bytes of a record; 0 when that is not known.
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
            # The read will say the same, if it is still so.
            _log.debug("The size of the records of %s is not known: %s", offset_range.partition, error.sentence)
            return 0.0
        return taken.size / taken.records if taken.records else 0.0
