"""Every row of the table, declared once: what is measured, its unit, and the target that it is held against.

Each row can run alone. A measure returns the runs of each side; the figures are taken from their medians.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import Bench, Runs
from benchmarks.brokers import make_broker
from benchmarks.load import consume, create_topic, delete_topic, produce, round_trips_ms
from benchmarks.process import cpu_seconds, rss_mib

_MILLION = 1_000_000
_MANY_PARTITIONS = 1_000
_ROUND_TRIPS = 3_000


@dataclass(frozen=True)
class Target:
    """`text` says it in the table; `met` judges the medians of kafka and pylog (kafka's may be missing)."""

    text: str
    met: Callable[[float | None, float], bool]


def ratio_at_least(factor: float) -> Target:
    """pylog's figure is at least `factor` times Kafka's (of speeds)."""
    return Target(f">= {factor:g} x", lambda kafka, pylog: kafka is not None and pylog >= factor * kafka)


def ratio_at_most(factor: float) -> Target:
    """pylog's figure is at most `factor` times Kafka's (of costs)."""
    return Target(f"<= {factor:g} x", lambda kafka, pylog: kafka is not None and pylog <= factor * kafka)


def at_most(limit: float, unit: str) -> Target:
    """pylog's own figure is at most `limit`."""
    return Target(f"<= {limit:g} {unit}", lambda _, pylog: pylog <= limit)


@dataclass(frozen=True)
class Row:
    """One row: `key` names it on the command line; of a speed more is better, of a cost less."""

    key: str
    title: str
    unit: str
    is_speed: bool
    target: Target
    measure: Callable[[Bench], Runs]


def _start_time(bench: Bench, partitions: int) -> Runs:
    def once(side: str) -> float:
        broker = make_broker(side, bench.fresh_folder(side))
        seconds = broker.start()
        try:
            if partitions:
                create_topic(broker.bootstrap_servers, "many", partitions)
                broker.stop()
                seconds = broker.start()
            return seconds
        finally:
            broker.stop()

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, warm_up=0)


def _rss_idle(bench: Bench) -> Runs:
    return {side: [rss_mib(bench.broker(side).pid)] for side in bench.sides}


def _rss_after(bench: Bench) -> Runs:
    return {side: [rss_mib(bench.broker(side).pid)] for side in bench.sides}


def _cpu_per_million(bench: Bench, side: str, records: int, load: Callable[[], float]) -> float:
    pid = bench.broker(side).pid
    before = cpu_seconds(pid)
    load()
    return (cpu_seconds(pid) - before) * _MILLION / records


def _produce_cpu(bench: Bench, records: int, value_bytes: int, settings: dict[str, object]) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        load = partial(produce, servers, topic, records, b"x" * value_bytes, settings)
        try:
            return _cpu_per_million(bench, side, records, load)
        finally:
            delete_topic(servers, topic)

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def _consume_cpu(bench: Bench, records: int, value_bytes: int) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        topic = bench.loaded_topic(side, records, value_bytes)
        load = partial(consume, bench.broker(side).bootstrap_servers, topic, records)
        return _cpu_per_million(bench, side, records, load)

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def _round_trip(bench: Bench, percentile: float) -> Runs:
    topics = {side: bench.new_topic(side, 1) for side in bench.sides}
    times = max(100, bench.records(_ROUND_TRIPS))

    def once(side: str) -> float:
        trips = round_trips_ms(bench.broker(side).bootstrap_servers, topics[side], b"x" * 200, times)
        return sorted(trips)[int(len(trips) * percentile)]

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def _spark_read(bench: Bench, records: int, value_bytes: int, columns: str) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        job: dict[str, object] = {"do": "read", "columns": columns, "rows": records, "bytes": value_bytes}
        if side != "ceiling":
            job |= {"bootstrap": bench.broker(side).bootstrap_servers}
            job |= {"topic": bench.loaded_topic(side, records, value_bytes)}
        return records / _MILLION / bench.spark(side).run(**job)

    return bench.take_turns({side: partial(once, side) for side in (*bench.sides, "ceiling")}, warm_up=2)


def _spark_write(bench: Bench, records: int, value_bytes: int) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        job: dict[str, object] = {"do": "write", "rows": records, "bytes": value_bytes}
        if side == "ceiling":
            return records / _MILLION / bench.spark(side).run(**job)
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        try:
            return records / _MILLION / bench.spark(side).run(**job, bootstrap=servers, topic=topic)
        finally:
            delete_topic(servers, topic)

    return bench.take_turns({side: partial(once, side) for side in (*bench.sides, "ceiling")}, warm_up=2)


_ONE: dict[str, object] = {"batch.num.messages": 1, "linger.ms": 0}
_FIFTY: dict[str, object] = {"batch.num.messages": 50, "linger.ms": 5}
_FULL: dict[str, object] = {"batch.num.messages": 10_000, "linger.ms": 50}

_BROKER_ROWS = (
    Row("start-empty", "start to first answer, empty", "s", False, at_most(0.3, "s"), partial(_start_time, partitions=0)),
    Row("start-1000", "start to first answer, 1,000 partitions", "s", False, at_most(1.0, "s"),
        partial(_start_time, partitions=_MANY_PARTITIONS)),
    Row("rss-idle", "memory, idle", "MiB", False, at_most(64, "MiB"), _rss_idle),
    Row("produce-1", "produce 200 B, one record a batch", "CPU s/M", False, ratio_at_most(0.5),
        partial(_produce_cpu, records=100_000, value_bytes=200, settings=_ONE)),
    Row("produce-50", "produce 200 B, batches of 50", "CPU s/M", False, ratio_at_most(0.5),
        partial(_produce_cpu, records=1_000_000, value_bytes=200, settings=_FIFTY)),
    Row("produce-full", "produce 200 B, full batches", "CPU s/M", False, ratio_at_most(0.5),
        partial(_produce_cpu, records=3_000_000, value_bytes=200, settings=_FULL)),
    Row("produce-1kb", "produce 1 kB, full batches", "CPU s/M", False, ratio_at_most(0.5),
        partial(_produce_cpu, records=600_000, value_bytes=1_000, settings=_FULL)),
    Row("consume-200b", "consume 200 B", "CPU s/M", False, ratio_at_most(1.0),
        partial(_consume_cpu, records=3_000_000, value_bytes=200)),
    Row("consume-1kb", "consume 1 kB", "CPU s/M", False, ratio_at_most(1.0),
        partial(_consume_cpu, records=1_000_000, value_bytes=1_000)),
    Row("p50", "end to end 200 B, median", "ms", False, ratio_at_most(1.0), partial(_round_trip, percentile=0.5)),
    Row("p99", "end to end 200 B, 99th percentile", "ms", False, ratio_at_most(1.0), partial(_round_trip, percentile=0.99)),
    Row("rss-after", "memory after these loads", "MiB", False, at_most(150, "MiB"), _rss_after),
)  # fmt: skip

_SPARK_ROWS = (
    Row("read-100b", "Spark batch read 100 B, all columns", "M rows/s", True, ratio_at_least(2.5),
        partial(_spark_read, records=4_000_000, value_bytes=100, columns="all")),
    Row("read-100b-value", "Spark batch read 100 B, value only", "M rows/s", True, ratio_at_least(4.0),
        partial(_spark_read, records=4_000_000, value_bytes=100, columns="value")),
    Row("read-1kb", "Spark batch read 1 kB, all columns", "M rows/s", True, ratio_at_least(3.0),
        partial(_spark_read, records=1_000_000, value_bytes=1_000, columns="all")),
    Row("write-100b", "Spark batch write 100 B", "M rows/s", True, ratio_at_least(2.5),
        partial(_spark_write, records=3_000_000, value_bytes=100)),
)  # fmt: skip

ROWS: tuple[Row, ...] = _BROKER_ROWS + _SPARK_ROWS
