"""What a million rows cost in CPU seconds, all processes together: Spark's JVM, its Python processes, the broker.

A rate on two cores says what is quick while nobody else needs the cores; this says how much of them it takes. The side that does
nothing (`ceiling.py`) has no broker: what Spark itself needs for a Python source or sink.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from benchmarks import typed
from benchmarks.bench import Bench, Runs
from benchmarks.load import delete_topic
from benchmarks.process import cpu_seconds, cpu_seconds_with_ended, program
from benchmarks.streams import large_query
from tests.harness.processes import descendants

_MILLION = 1_000_000
_ROUNDS_MAX = 3
#: The JVM with the commands that it runs and waits for, Spark's Python driver with all Python workers, and the broker.
PARTS = ("jvm", "python", "broker")

Parts = dict[str, float]
_measured: dict[tuple[object, ...], dict[str, list[Parts]]] = {}


def read(bench: Bench, records: int, value_bytes: int, part: str) -> Runs:
    """Of a batch read of all columns."""
    records = bench.records(records)

    def once(side: str) -> Parts:
        job: dict[str, object] = {"do": "read", "columns": "all", "rows": records, "bytes": value_bytes}
        if side != "ceiling":
            job |= {"bootstrap": bench.broker(side).bootstrap_servers}
            job |= {"topic": bench.loaded_topic(side, records, value_bytes)}
        return cost(bench, side, job, records)

    return _once(bench, ("read", records, value_bytes), part, once)


def read_typed(bench: Bench, records: int, columns: int, form: str, part: str) -> Runs:
    """Of a batch read of `columns` of the 20 fields of values of a format."""
    records = bench.records(records)

    def once(side: str) -> Parts:
        return cost(bench, side, typed.job(bench, side, records, columns, form), records)

    return _once(bench, ("typed", form, records, columns), part, once, bench.sides)


def write(bench: Bench, records: int, value_bytes: int, part: str) -> Runs:
    """Of a batch write."""
    records = bench.records(records)

    def once(side: str) -> Parts:
        job: dict[str, object] = {"do": "write", "rows": records, "bytes": value_bytes}
        if side == "ceiling":
            return cost(bench, side, job, records)
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        try:
            return cost(bench, side, {**job, "bootstrap": servers, "topic": topic}, records)
        finally:
            delete_topic(servers, topic)

    return _once(bench, ("write", records, value_bytes), part, once)


def stream(bench: Bench, part: str) -> Runs:
    """Of a query that reads micro-batches of a million rows of 100 B, its start and end included."""

    def once(side: str) -> Parts:
        job, records = large_query(bench, side)
        return cost(bench, side, job, records)

    return _once(bench, ("stream",), part, once)


def _once(
    bench: Bench,
    key: tuple[object, ...],
    part: str,
    once: Callable[[str], Parts],
    sides: tuple[str, ...] | None = None,
) -> Runs:
    """`part` of the figures of `key`, or their sum, measured at the first call for all parts; of `sides`, or of all."""
    if key not in _measured:
        measures = {side: partial(once, side) for side in sides or (*bench.sides, "ceiling")}
        _measured[key] = bench.take_turns(measures, warm_up=2, rounds_max=_ROUNDS_MAX, fills_memory=True)
    return {
        side: [sum(run.values()) if part == "sum" else run[part] for run in runs]
        for side, runs in _measured[key].items()
    }


def cost(bench: Bench, side: str, job: Mapping[str, object], records: int) -> Parts:
    """CPU seconds of each part for a million of the job's `records`."""
    before = _used(bench, side)
    bench.spark(side).figures(**job)
    after = _used(bench, side)
    return {part: (after[part] - before[part]) * _MILLION / records for part in PARTS}


def _used(bench: Bench, side: str) -> Parts:
    session = bench.spark(side).pid
    used = {"jvm": 0.0, "python": 0.0, "broker": 0.0 if side == "ceiling" else cpu_seconds(bench.broker(side).pid)}
    # Children first: one that ends meanwhile is counted with its parent.
    for pid in reversed((session, *descendants(session))):
        with suppress(FileNotFoundError, ProcessLookupError):
            used["jvm" if program(pid) == "java" else "python"] += cpu_seconds_with_ended(pid)
    return used
