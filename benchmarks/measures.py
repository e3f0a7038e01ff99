"""How each row is measured. A measure returns the runs of each side; the figures are taken from their medians."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks import compaction
from benchmarks.bench import PARTITIONS, Bench, Runs
from benchmarks.brokers import make_broker
from benchmarks.coordination import join
from benchmarks.drain import Drain
from benchmarks.file_writes import write_files
from benchmarks.load import consume, create_topic, delete_topic, produce, round_trips_ms, texts
from benchmarks.process import CpuSeconds, cpu_parts, cpu_seconds, peak_rss_mib, rss_mib

_MILLION = 1_000_000
_THOUSAND = 1_000
_ROUND_TRIPS = 3_000


def start_time(bench: Bench, partitions: int) -> Runs:
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


def rss_idle(bench: Bench) -> Runs:
    return {side: [rss_mib(bench.broker(side).pid)] for side in bench.sides}


def rss_after(bench: Bench) -> Runs:
    return {side: [rss_mib(bench.broker(side).pid)] for side in bench.sides}


def cpu_per_million(bench: Bench, side: str, records: int, load: Callable[[], float]) -> CpuSeconds:
    pid = bench.broker(side).pid
    before = cpu_parts(pid)
    load()
    return (cpu_parts(pid) - before) * (_MILLION / records)


def _values(value_bytes: int, settings: dict[str, object]) -> Sequence[bytes]:
    """What is produced: one value, but where it is compressed, since a million equal ones are compressed to nothing."""
    return texts(value_bytes) if "compression.type" in settings else [b"x" * value_bytes]


_produced: dict[tuple[object, ...], dict[str, list[CpuSeconds]]] = {}


def produce_cpu(
    bench: Bench,
    records: int,
    value_bytes: int,
    settings: dict[str, object],
    part: str = "whole",
    has_floor: bool = False,
) -> Runs:
    """The broker's CPU seconds for a million records, or the `part` (`user`, `system`) of them; all parts come from the same rounds.
    With `has_floor`, what it takes to write as many bytes into files stands beside it."""
    records = bench.records(records)
    key = (records, value_bytes, *sorted(settings.items()))
    if key not in _produced:
        measures = {side: partial(_produced_once, bench, side, records, value_bytes, settings) for side in bench.sides}
        if has_floor:
            measures["only writes"] = partial(_written_once, bench, records, value_bytes)
        _produced[key] = bench.take_turns(measures, fills_memory=True)
    return {side: [getattr(run, part) for run in runs] for side, runs in _produced[key].items()}


def _produced_once(bench: Bench, side: str, records: int, value_bytes: int, settings: dict[str, object]) -> CpuSeconds:
    servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
    load = partial(produce, servers, topic, records, _values(value_bytes, settings), settings)
    try:
        return cpu_per_million(bench, side, records, load)
    finally:
        delete_topic(servers, topic)


def _written_once(bench: Bench, records: int, value_bytes: int) -> CpuSeconds:
    return write_files(bench.fresh_folder("writes"), PARTITIONS, records * value_bytes // PARTITIONS) * (
        _MILLION / records
    )


def consume_cpu(bench: Bench, records: int, value_bytes: int) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        topic = bench.loaded_topic(side, records, value_bytes)
        load = partial(consume, bench.broker(side).bootstrap_servers, topic, records)
        return cpu_per_million(bench, side, records, load).whole

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def round_trip(bench: Bench, percentile: float) -> Runs:
    topics = {side: bench.new_topic(side, 1) for side in bench.sides}
    times = max(100, bench.records(_ROUND_TRIPS))

    def once(side: str) -> float:
        trips = round_trips_ms(bench.broker(side).bootstrap_servers, topics[side], b"x" * 200, times)
        return sorted(trips)[int(len(trips) * percentile)]

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def spark_read(bench: Bench, records: int, value_bytes: int, columns: str, way: str = "wire") -> Runs:
    """Million rows a second. `way` is pylog's: "wire"; "local", where the broker says which of its files have the records; "files", the
    data directory without asking the broker for anything."""
    records = bench.records(records)

    def once(side: str) -> float:
        job: dict[str, object] = {"do": "read", "columns": columns, "rows": records, "bytes": value_bytes}
        if side != "ceiling":
            job |= {"bootstrap": bench.broker(side).bootstrap_servers}
            job |= {"topic": bench.loaded_topic(side, records, value_bytes)}
        if side == "pylog" and way == "files":
            job |= {"path": str(bench.broker(side).data_dir)}
        elif side == "pylog":
            job |= {"options": {"localReads": "auto" if way == "local" else "never"}}
        return records / _MILLION / bench.spark(side).run(**job)

    return bench.take_turns({side: partial(once, side) for side in (*bench.sides, "ceiling")}, warm_up=2)


#: The side of `spark_write` whose bytes go to a process that drops them.
DRAINED = "drained"
_written: dict[tuple[Bench, int, int], Runs] = {}


def spark_write(bench: Bench, records: int, value_bytes: int, beside: str) -> Runs:
    """Million rows a second: of both sides, and of `beside`, which is "ceiling" (a sink that drops its batches) or `DRAINED` (one that
    sends them to a process that does). All come from the same rounds."""
    key = (bench, bench.records(records), value_bytes)
    if key not in _written:
        _written[key] = _spark_write(*key)
    return {side: runs for side, runs in _written[key].items() if side in (*bench.sides, beside)}


def _spark_write(bench: Bench, records: int, value_bytes: int) -> Runs:
    drain = Drain()
    bench.when_closed(drain.close)

    def once(side: str) -> float:
        job: dict[str, object] = {"do": "write", "rows": records, "bytes": value_bytes}
        if side in ("ceiling", DRAINED):
            job |= {"drain": drain.address} if side == DRAINED else {}
            return records / _MILLION / bench.spark("ceiling").run(**job)
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        try:
            return records / _MILLION / bench.spark(side).run(**job, bootstrap=servers, topic=topic)
        finally:
            delete_topic(servers, topic)

    sides = (*bench.sides, "ceiling", DRAINED)
    return bench.take_turns({side: partial(once, side) for side in sides}, warm_up=2, fills_memory=True)


def produce_rate(bench: Bench, records: int, value_bytes: int, settings: dict[str, object]) -> Runs:
    records = bench.records(records)

    def once(side: str) -> float:
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side)
        try:
            return records / _MILLION / produce(servers, topic, records, _values(value_bytes, settings), settings)
        finally:
            delete_topic(servers, topic)

    return bench.take_turns({side: partial(once, side) for side in bench.sides}, fills_memory=True)


def per_second(bench: Bench, number: int, load: Callable[[str, str, int], float]) -> Runs:
    """`number` operations by `load(servers, topic, number)`: how many a second."""
    number = bench.records(number)

    def once(side: str) -> float:
        servers, topic = bench.broker(side).bootstrap_servers, bench.new_topic(side, 1)
        return number / load(servers, topic, number)

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def cpu_per_operation(bench: Bench, number: int, load: Callable[[str, str, int], float]) -> Runs:
    """The broker's CPU milliseconds for each of `number` operations."""
    number = bench.records(number)

    def once(side: str) -> float:
        broker, topic = bench.broker(side), bench.new_topic(side, 1)
        before = cpu_seconds(broker.pid)
        load(broker.bootstrap_servers, topic, number)
        return (cpu_seconds(broker.pid) - before) * _THOUSAND / number

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


def join_seconds(bench: Bench, members: int, protocol: str) -> Runs:
    def once(side: str) -> float:
        return join(bench.broker(side).bootstrap_servers, bench.new_topic(side, members), members, protocol)

    return bench.take_turns({side: partial(once, side) for side in bench.sides})


@dataclass(frozen=True)
class Compacted:
    """What one compaction took: MiB read a second, the broker's CPU seconds for a GiB, MiB that its memory grew by at most."""

    mib_per_second: float
    cpu_per_gib: float
    grown_mib: float


def compacted(bench: Bench, records: int, figure: str) -> Runs:
    """The `figure` (a field of `Compacted`) of each side; a broker is measured once for all figures."""
    return {
        side: [getattr(run, figure) for run in _compactions(bench, side, bench.records(records))]
        for side in bench.sides
    }


_compacted: dict[str, list[Compacted]] = {}


def _compactions(bench: Bench, side: str, records: int) -> list[Compacted]:
    if side not in _compacted:
        _compacted[side] = [_compact_once(bench, side, records) for _ in range(bench.rounds)]
    return _compacted[side]


def _compact_once(bench: Bench, side: str, records: int) -> Compacted:
    broker = make_broker(side, bench.fresh_folder(side), compaction.SETTINGS)
    broker.start()
    try:
        compaction.fill(broker.bootstrap_servers, records)
        cpu, memory = cpu_seconds(broker.pid), rss_mib(broker.pid)
        mib, seconds = compaction.compact(broker.bootstrap_servers, broker.data_dir)
        cpu, memory = cpu_seconds(broker.pid) - cpu, peak_rss_mib(broker.pid) - memory
        return Compacted(mib / seconds, cpu * 1_024 / mib, memory)
    finally:
        broker.stop()
