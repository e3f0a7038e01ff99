"""How streaming queries are measured: what a micro-batch takes, by Spark's own progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import PARTITIONS, Bench, Runs
from benchmarks.load import delete_topic

_ROUNDS_MAX = 3
_VALUE_BYTES = 100
AT_LEAST_ONCE = "at-least-once"
BY_TASKS = "by tasks"
_BY_DRIVER, _NOT_BY_DRIVER = {"prefetchMaxBytes": "1g"}, {"prefetchMaxBytes": "0"}
_TUNED = " tuned"


@dataclass(frozen=True)
class Batches:
    """How many micro-batches of how many rows a query runs, and how many of them are not counted."""

    rows: int
    counted: int
    warm: int


_SMALL = Batches(rows=10, counted=12, warm=6)
SMALL_OF_FOUR = Batches(_SMALL.rows * PARTITIONS, _SMALL.counted, _SMALL.warm)
_LARGE = Batches(rows=1_000_000, counted=3, warm=1)

_Figures = dict[str, list[dict[str, float]]]
_measured: dict[tuple[object, ...], _Figures] = {}


def floor(bench: Bench, partitions: int, part: str, is_by_tasks: bool = False, is_tuned: bool = False) -> Runs:
    """Milliseconds (`part` of `stream_job.stream`) of a micro-batch of ten records from each of `partitions` log
    partitions into the noop sink: Spark's connector on Apache Kafka, pylog on pylog, and a Python source that does nothing.

    All parts come from the same queries. With `is_by_tasks`, pylog's are those that its tasks read, in Python workers; with
    `is_tuned`, all sides' are those in which Spark asks no readlink for the checkpoint (four partitions only).
    """
    batches = Batches(_SMALL.rows * partitions, _SMALL.counted, _SMALL.warm)
    four, many = partitions == PARTITIONS, partitions > PARTITIONS
    every = _once(("floor", partitions), part, lambda: _read(bench, partitions, batches, many, four))
    figures = _chosen(every, is_tuned)
    by_tasks = figures.pop(BY_TASKS, [])
    return {**figures, "pylog": by_tasks} if is_by_tasks else figures


def by_driver(bench: Bench, rows: int) -> Runs:
    """Milliseconds of a micro-batch of `rows` of 100 B from four log partitions into the noop sink: pylog's read by the driver however
    large it is, the same read by the tasks, and Spark's connector. Where both of pylog's are equal `prefetchMaxBytes` belongs."""
    batches = Batches(rows, _SMALL.counted, _SMALL.warm)
    ways = {"kafka": ("kafka", {}), "pylog": ("pylog", _BY_DRIVER), BY_TASKS: ("pylog", _NOT_BY_DRIVER)}
    measures = {
        way: partial(_run, bench, side, PARTITIONS, batches, read)
        for way, (side, read) in ways.items()
        if side in bench.sides
    }
    return _once(("by driver", rows), "whole", lambda: bench.take_turns(measures, rounds_max=_ROUNDS_MAX))


def large(bench: Bench) -> Runs:
    """Milliseconds of a micro-batch of a million rows of 100 B from four log partitions into the noop sink."""
    return _once(("large",), "whole", lambda: _read(bench, PARTITIONS, _large(bench)))


def large_query(bench: Bench, side: str) -> tuple[dict[str, object], int]:
    """The job of `side` that `large` measures, and how many rows it reads in all."""
    batches = _large(bench)
    return _query(bench, side, PARTITIONS, batches), batches.rows * (batches.warm + batches.counted)


def _large(bench: Bench) -> Batches:
    return Batches(bench.records(_LARGE.rows) // PARTITIONS * PARTITIONS, _LARGE.counted, _LARGE.warm)


def sink(bench: Bench, is_large: bool, is_tuned: bool = False) -> Runs:
    """Milliseconds of a micro-batch from a log of four partitions into another: pylog exactly once, pylog at least once, and
    Spark's connector (at least once) from Apache Kafka to Apache Kafka. `is_tuned` as for `floor`, of small ones only."""
    size = _LARGE if is_large else SMALL_OF_FOUR
    batches = Batches(bench.records(size.rows), size.counted, size.warm) if is_large else size
    return _chosen(_once(("sink", is_large), "whole", lambda: _write(bench, batches, not is_large)), is_tuned)


def _chosen(figures: Runs, is_tuned: bool) -> Runs:
    """Those with, or those without the tuned setting, under the sides' own names."""
    return {side.removesuffix(_TUNED): runs for side, runs in figures.items() if side.endswith(_TUNED) == is_tuned}


def _once(key: tuple[object, ...], part: str, measure: Callable[[], _Figures]) -> Runs:
    """`part` of the figures of `key`, measured at the first call for all parts."""
    if key not in _measured:
        _measured[key] = measure()
    return {side: [run[part] for run in runs] for side, runs in _measured[key].items()}


def _read(
    bench: Bench, partitions: int, batches: Batches, has_by_tasks: bool = False, has_tuned: bool = False
) -> _Figures:
    once = partial(_run, bench, partitions=partitions, batches=batches)
    measures = {side: partial(once, side, read={}) for side in (*bench.sides, "ceiling")}
    if has_by_tasks and "pylog" in measures:
        measures[BY_TASKS] = partial(once, "pylog", read=_NOT_BY_DRIVER)
    return bench.take_turns(_and_tuned(measures) if has_tuned else measures, rounds_max=_ROUNDS_MAX)


def _run(
    bench: Bench, side: str, partitions: int, batches: Batches, read: Mapping[str, str], is_tuned: bool = False
) -> dict[str, float]:
    return bench.spark(side).figures(**_query(bench, side, partitions, batches, read, is_tuned))


def _write(bench: Bench, batches: Batches, has_tuned: bool) -> _Figures:
    def once(side: str, delivery: Mapping[str, str], is_tuned: bool = False) -> dict[str, float]:
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        job = query_job(bench, batches, is_tuned) | _log(bench, side, PARTITIONS, batches)
        try:
            write = {"kafka.bootstrap.servers": servers, "topic": topic, **delivery}
            return bench.spark(side).figures(**job, write=write)
        finally:
            delete_topic(servers, topic)

    measures = {side: partial(once, side, {}) for side in bench.sides}
    if "pylog" in measures:
        measures["pylog"] = partial(once, "pylog", {"delivery": "exactly-once"})
        measures[AT_LEAST_ONCE] = partial(once, "pylog", {"delivery": AT_LEAST_ONCE})
    return bench.take_turns(_and_tuned(measures) if has_tuned else measures, rounds_max=_ROUNDS_MAX)


def _and_tuned(measures: Mapping[str, partial[dict[str, float]]]) -> dict[str, Callable[[], dict[str, float]]]:
    """Each measure, and after it the same with the tuned setting."""
    both: dict[str, Callable[[], dict[str, float]]] = {}
    for side, measure in measures.items():
        both |= {side: measure, side + _TUNED: partial(measure, is_tuned=True)}
    return both


def _query(
    bench: Bench,
    side: str,
    partitions: int,
    batches: Batches,
    read: Mapping[str, str] | None = None,
    is_tuned: bool = False,
) -> dict[str, object]:
    """The job of a query into the noop sink."""
    job = query_job(bench, batches, is_tuned)
    if side == "ceiling":
        return {**job, "tasks": partitions, "bytes": _VALUE_BYTES}
    return {**job, **_log(bench, side, partitions, batches), "read": dict(read or {})}


def query_job(bench: Bench, batches: Batches, is_tuned: bool = False) -> dict[str, object]:
    """What a session is to run: a query of `batches`, without its source and sink."""
    numbers = {"trigger": batches.rows, "batches": batches.warm + batches.counted, "warm": batches.warm}
    return {"do": "stream", "folder": str(bench.folder), "tuned": is_tuned, **numbers}


def _log(bench: Bench, side: str, partitions: int, batches: Batches) -> dict[str, object]:
    """A log with enough records for all batches, an equal number in each partition."""
    records = batches.rows * (batches.warm + batches.counted)
    topic = bench.loaded_topic(side, records, _VALUE_BYTES, partitions)
    return {"bootstrap": bench.broker(side).bootstrap_servers, "topic": topic}
