"""The numbers of queries, from their batches; what is given to Prometheus and OpenTelemetry. No Spark and no exporter here.

Everything that can grow has a bound, and what is beyond it is left out with one line in the log: queries, the oldest first (`QUERIES_MAX`);
partitions of a query (given), the last by name; sources, operators and parts of a batch (`PARTS_MAX`). Sums are of all partitions. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pylog_spark.listener.progress import BatchProgress
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position

log = logging.getLogger("pylog_spark")

#: Most queries that have numbers.
QUERIES_MAX = 100
#: Most partitions of a query that have numbers of their own, unless another bound is given.
PARTITIONS_MAX = 1_000
#: Most sources, most operators with state and most parts of a batch that a query has numbers of.
PARTS_MAX = 50

#: A partition as a source of a query, by its number, reads it.
Read = tuple[int, TopicPartition]
Samples = Iterator[tuple[tuple[str, ...], float]]


class Measured(NamedTuple):
    """What a look at the brokers found of a partition.

    Attributes
    ----------
    latest : int or None
        The end of its log; None where it is gone.
    since_s : float or None
        The time of the first record that is not read, in seconds since 1970; None where there is none, or that has no time.
    lag_bytes : int or None
        About how many bytes are not read; None where nothing says so.
    """

    latest: int | None
    since_s: float | None
    lag_bytes: int | None


@dataclass
class QueryNumbers:
    """The numbers of the queries of one name.

    Attributes
    ----------
    run_id : str
        The latest start.
    is_active : bool
        Whether it runs.
    changed_s : float
        When Spark reported the last batch, in seconds since 1970.
    batch : BatchProgress or None
        The last batch.
    batches : int
        How many there were.
    rows : Counter of str
        Rows that were read, by the number of the source.
    seconds : Counter of str
        Seconds that the batches took, by part.
    measured : dict of Read to Measured
        What the last look found.
    is_cut : bool
        Whether the log says that partitions are left out.
    """

    run_id: str
    is_active: bool = True
    changed_s: float = 0.0
    batch: BatchProgress | None = None
    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    measured: dict[Read, Measured] = field(default_factory=dict)
    is_cut: bool = False

    def positions(self) -> dict[int, Position]:
        """Where the sources that read a log are, by their numbers."""
        sources = enumerate(self.batch.sources if self.batch else ())
        return {number: source.end for number, source in sources if source.end is not None and source.end.offsets}

    def lags(self) -> dict[Read, int]:
        """Offsets that are not read, of all partitions in their order."""
        found: dict[Read, int] = {}
        for number, source in enumerate(self.batch.sources if self.batch else ()):
            lag = source.lag()
            for partition, end in sorted((source.end.offsets if source.end else {}).items()):
                look = self.measured.get((number, partition))
                if look is not None and look.latest is not None:
                    found[number, partition] = max(look.latest - end, lag.get(partition, 0))
                elif partition in lag:
                    found[number, partition] = lag[partition]
        return found

    def seconds_behind(self, now_s: float) -> dict[Read, float]:
        """The age of the first record that is not read; 0 where all are, nothing where no look has found it."""
        found = {}
        for read, lag in self.lags().items():
            look = self.measured.get(read)
            if not lag:
                found[read] = 0.0
            elif look is not None and look.since_s is not None:
                found[read] = max(now_s - look.since_s, 0.0)
        return found


class Family(NamedTuple):
    """Numbers of one kind.

    Attributes
    ----------
    name : str
        Its name for Prometheus, without ``_total``.
    is_counter : bool
        Whether it only grows.
    unit : str
        ``s``, ``By``, or what is counted in braces, as OpenTelemetry has it.
    says : str
        What it is.
    labels : tuple of str
        The names of the labels after ``query``.
    """

    name: str
    is_counter: bool
    unit: str
    says: str
    labels: tuple[str, ...] = ()


_OF_SOURCE, _OF_PARTITION = ("source",), ("source", "topic", "partition")
ACTIVE = Family("pylog_query_active", False, "{query}", "Whether the query runs.")
LAST = Family("pylog_query_last_batch_timestamp_seconds", False, "s", "When the last batch was finished.")
BATCH_ID = Family("pylog_query_batch_id", False, "{batch}", "The number of the last batch.")
BATCHES = Family("pylog_query_batches", True, "{batch}", "Batches that were finished.")
SECONDS = Family(
    "pylog_query_batch_seconds", True, "s", "Seconds that batches took, by Spark's names of the parts.", ("part",)
)
INPUT = Family("pylog_query_input_rows_per_second", False, "{row}/s", "Rows that arrived, of the last batch.")
PROCESSED = Family("pylog_query_processed_rows_per_second", False, "{row}/s", "Rows processed, of the last batch.")
STATE = Family("pylog_query_state_rows", False, "{row}", "Rows of state.", ("operator",))
ROWS = Family("pylog_query_input_rows", True, "{row}", "Rows that were read.", _OF_SOURCE)
LAG = Family("pylog_query_lag_records", False, "{record}", "Offsets not read, of all partitions.", _OF_SOURCE)
BEHIND = Family("pylog_query_lag_seconds", False, "s", "Age of the oldest record that is not read.", _OF_SOURCE)
END = Family("pylog_query_end_offset", False, "{offset}", "Next offset that is read.", _OF_PARTITION)
LATEST = Family("pylog_query_latest_offset", False, "{offset}", "One past the last record.", _OF_PARTITION)
OF_LAG = Family("pylog_query_partition_lag_records", False, "{record}", "Offsets not read.", _OF_PARTITION)
OF_BEHIND = Family(
    "pylog_query_partition_lag_seconds", False, "s", "Age of the first record that is not read.", _OF_PARTITION
)
OF_BYTES = Family("pylog_query_partition_lag_bytes", False, "By", "About the bytes that are not read.", _OF_PARTITION)
LEFT_OUT = Family("pylog_query_partitions_left_out", False, "{partition}", "Partitions without numbers of their own.")
FAMILIES = (
    ACTIVE, LAST, BATCH_ID, BATCHES, SECONDS, INPUT, PROCESSED, STATE, ROWS,
    LAG, BEHIND, END, LATEST, OF_LAG, OF_BEHIND, OF_BYTES, LEFT_OUT,
)  # fmt: skip


class Numbers:
    """The numbers of all queries that a listener hears of.

    Parameters
    ----------
    partitions_max : int
        Most partitions of a query that have numbers of their own.
    now_s : callable
        The clock, in seconds since 1970.
    """

    def __init__(self, partitions_max: int = PARTITIONS_MAX, now_s: Callable[[], float] = time.time) -> None:
        self._partitions_max = partitions_max
        self._now_s = now_s
        self._queries: dict[str, QueryNumbers] = {}
        self._lock = threading.Lock()

    def begin(self, query: str, run_id: str) -> None:
        """A query starts. What is counted goes on where one of the same name has ended."""
        with self._lock:
            self._query(query, run_id)

    def add(self, batch: BatchProgress) -> None:
        """A batch is finished."""
        with self._lock:
            query = self._query(batch.query, batch.run_id)
            query.batch, query.changed_s = batch, self._now_s()
            query.batches += 1
            for number, source in enumerate(batch.sources):
                query.rows[str(number)] += source.rows
            for part, took_ms in batch.parts_ms.items():
                query.seconds[part] = query.seconds.get(part, 0.0) + took_ms / 1_000
            partitions = sum(len(position.offsets) for position in query.positions().values())
            if partitions > self._partitions_max and not query.is_cut:
                query.is_cut = True
                log.warning(
                    "The query %r reads %d partitions: its metrics have the first %d of them, and sums of all.",
                    batch.query,
                    partitions,
                    self._partitions_max,
                )

    def end(self, run_id: str) -> None:
        """A query has ended; its last numbers stay."""
        with self._lock:
            for query in self._queries.values():
                if query.run_id == run_id:
                    query.is_active = False

    def positions(self) -> dict[str, dict[int, Position]]:
        """Where the sources of the queries that run are, by query and number of the source."""
        with self._lock:
            return {name: query.positions() for name, query in self._queries.items() if query.is_active}

    def measure(self, query: str, measured: Mapping[Read, Measured]) -> None:
        """A look at the brokers has found this, of all partitions."""
        with self._lock:
            if query in self._queries:
                self._queries[query].measured = dict(measured)

    def families(self) -> Iterator[tuple[Family, list[tuple[tuple[str, ...], float]]]]:
        """All numbers now, with the values of their labels."""
        for family in FAMILIES:
            yield family, self.samples(family)

    def samples(self, family: Family) -> list[tuple[tuple[str, ...], float]]:
        """The numbers of one kind now, with the values of their labels."""
        now_s = self._now_s()
        with self._lock:
            return [
                ((name, *labels), value)
                for name, query in self._queries.items()
                for labels, value in _SAMPLES[family](query, now_s, self._partitions_max)
            ]

    def _query(self, name: str, run_id: str) -> QueryNumbers:
        query = self._queries.pop(name, None)
        if query is None:
            query = QueryNumbers(run_id)
            if len(self._queries) >= QUERIES_MAX:
                oldest = next(iter(self._queries))
                del self._queries[oldest]
                log.warning("Metrics are kept of %d queries: those of %r are left out.", QUERIES_MAX, oldest)
        if query.run_id != run_id:
            query.run_id, query.measured = run_id, {}
        query.is_active = True
        # To the end: the first is the one that was quiet for longest.
        self._queries[name] = query
        return query


def _whole(query: QueryNumbers, value: Callable[[QueryNumbers], float | None]) -> Samples:
    found = value(query)
    if found is not None:
        yield (), found


def _of_batch(query: QueryNumbers, value: Callable[[BatchProgress], float | None]) -> Samples:
    if query.batch is not None:
        yield from _whole(query, lambda each: value(each.batch) if each.batch else None)


def _some(values: Mapping[str, float]) -> Samples:
    for name in sorted(values)[:PARTS_MAX]:
        yield (name,), values[name]


def _by_source(values: Mapping[Read, float], total: Callable[[Iterable[float]], float]) -> Samples:
    for number in sorted({number for number, _ in values})[:PARTS_MAX]:
        yield (str(number),), total(value for (of, _), value in values.items() if of == number)


def _by_partition(values: Mapping[Read, float], most: int) -> Samples:
    for number, (topic, partition) in sorted(values)[:most]:
        yield (str(number), topic, str(partition)), values[number, TopicPartition(topic, partition)]


def _ends(query: QueryNumbers) -> dict[Read, float]:
    positions = query.positions().items()
    return {(number, each): at for number, position in positions for each, at in position.offsets.items()}


def _latest(query: QueryNumbers) -> dict[Read, float]:
    ends = _ends(query)
    return {read: ends[read] + lag for read, lag in query.lags().items()}


def _bytes(query: QueryNumbers) -> dict[Read, float]:
    lags = query.lags()
    found = {read: 0 if not lag else look.lag_bytes for read, lag in lags.items() if (look := query.measured.get(read))}
    return {read: size for read, size in found.items() if size is not None}


_SAMPLES: dict[Family, Callable[[QueryNumbers, float, int], Samples]] = {
    ACTIVE: lambda query, *_: _whole(query, lambda each: int(each.is_active)),
    LAST: lambda query, *_: _whole(query, lambda each: each.changed_s or None),
    BATCH_ID: lambda query, *_: _of_batch(query, lambda batch: batch.batch_id),
    BATCHES: lambda query, *_: _whole(query, lambda each: each.batches),
    SECONDS: lambda query, *_: _some(query.seconds),
    INPUT: lambda query, *_: _of_batch(query, lambda batch: batch.input_rate),
    PROCESSED: lambda query, *_: _of_batch(query, lambda batch: batch.processed_rate),
    STATE: lambda query, *_: _some(query.batch.state_rows if query.batch else {}),
    ROWS: lambda query, *_: _some(query.rows),
    LAG: lambda query, *_: _by_source(query.lags(), sum),
    BEHIND: lambda query, now_s, _: _by_source(query.seconds_behind(now_s), max),
    END: lambda query, _, most: _by_partition(_ends(query), most),
    LATEST: lambda query, _, most: _by_partition(_latest(query), most),
    OF_LAG: lambda query, _, most: _by_partition(query.lags(), most),
    OF_BEHIND: lambda query, now_s, most: _by_partition(query.seconds_behind(now_s), most),
    OF_BYTES: lambda query, _, most: _by_partition(_bytes(query), most),
    LEFT_OUT: lambda query, _, most: _whole(query, lambda each: max(len(_ends(each)) - most, 0)),
}
