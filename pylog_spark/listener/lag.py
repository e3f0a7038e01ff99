"""How far queries are behind the log in seconds and bytes, asked of the brokers: Spark's progress has neither, and is silent while a query hangs.

The first record that is not read is looked at, as by ``pylog checkpoint lag``; of at most `READ_MAX` partitions at a time, those furthest behind.
Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from heapq import nlargest

from pylog_spark.checkpoint.lag import lag_of
from pylog_spark.client.admin import Admin
from pylog_spark.client.places import Bounds, bounds_of
from pylog_spark.listener.numbers import Measured, Numbers, Read
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position

#: Most partitions of a query's source of which the first record that is not read is looked at: each takes a connection and two requests.
READ_MAX = 100
#: Longest wait in ms for an answer.
_ANSWER_MS = 5_000


class Looks:
    """Asks the brokers about the queries that run.

    Parameters
    ----------
    numbers : Numbers
        Which queries there are, and where what is found goes.
    config : mapping of str to str
        Settings of the client by Kafka's names, with ``bootstrap.servers``.
    now_s : callable
        The clock, in seconds since 1970.
    """

    def __init__(self, numbers: Numbers, config: Mapping[str, str], now_s: Callable[[], float] = time.time) -> None:
        self._numbers = numbers
        self._config = {
            **config,
            "default.api.timeout.ms": str(_ANSWER_MS),
            "request.timeout.ms": str(_ANSWER_MS),
        }
        self._now_s = now_s

    def look(self) -> None:
        """Ask once.

        Raises
        ------
        LogError
            When no broker can be reached.
        """
        for query, positions in self._numbers.positions().items():
            found: dict[Read, Measured] = {}
            for number, position in positions.items():
                found.update({(number, each): seen for each, seen in self._source(position).items()})
            self._numbers.measure(query, found)

    def _source(self, position: Position) -> dict[TopicPartition, Measured]:
        with Admin(self._config["bootstrap.servers"], self._config) as admin:
            bounds = {TopicPartition(*each): at for each, at in bounds_of(admin, sorted(position.offsets)).items()}
        found = {each: Measured(at.end, None, None) for each, at in bounds.items()}
        behind = nlargest(READ_MAX, bounds, key=lambda each: _lag(position, each, bounds[each]))
        late = {each: position.offsets[each] for each in behind if _lag(position, each, bounds[each]) > 0}
        now_s = self._now_s()
        if late:
            for lag in lag_of(self._config, Position(late, position.topic_ids), int(now_s * 1_000)):
                since_s = None if lag.behind_ms is None else now_s - lag.behind_ms / 1_000
                found[TopicPartition(lag.topic, lag.partition)] = Measured(lag.end_offset, since_s, lag.lag_bytes)
        return found


def _lag(position: Position, partition: TopicPartition, bounds: Bounds) -> int:
    return bounds.end - max(position.offsets[partition], bounds.start)
