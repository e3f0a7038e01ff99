"""Archives: how quickly logs are copied into one, and Spark reads it, beside Spark's connector on the topic itself."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import zstandard
from confluent_kafka import Consumer, TopicPartition

from benchmarks.bench import PARTITIONS, Bench, Runs
from benchmarks.executors import give_a_core_each
from benchmarks.load import consume, create_topic, produce, round_trips_ms, texts, until
from benchmarks.process import cpu_seconds, peak_rss_mib
from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.root import open_archive
from pylog_spark.archive.store.segment import FRAME_BYTES
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker

_MILLION = 1_000_000
_MIB = 1 << 20
#: The side that reads the same topic from pylog's broker, over the network.
BY_BROKER = "by broker"
#: The side that reads with half as many executors.
ONE_EXECUTOR = "one executor"
_VALUE_BYTES = 1_000


#: librdkafka asks for more at once when its queue has been full; by itself a second later, so that a quick broker looks slow.
_AT_ONCE: dict[str, object] = {"fetch.queue.backoff.ms": 1}
#: Nobody reads old records meanwhile; somebody reads as many that the broker has itself.
UNDISTURBED, BESIDE_LOCAL = "undisturbed", "beside the broker's own"
#: The scheduling policy of the client that reads old records: as others, or only what they leave of the processors (Linux' SCHED_IDLE), so that what
#: disturbs is the broker's work for it, not its own, for which it would have a machine of its own.
AS_OTHERS, WHEN_IDLE = "other", "idle"
_COLD, _WARM, _HOT = "cold", "warm", "hot"
_MOST_S = 600
_TRIPS = 2_000
_SMALL = 200


def _topic(bench: Bench, side: str, records: int) -> str:
    """A topic of records of random words, which zstandard makes 2.6 times smaller."""
    name = f"words-{records}"
    if (side, name) not in _filled.setdefault(bench, {}):
        servers = bench.broker(side).bootstrap_servers
        create_topic(servers, name, PARTITIONS)
        produce(servers, name, records, texts(_VALUE_BYTES), {})
        _filled[bench][side, name] = ""
    return name


#: What is filled, and where its archive is.
_filled: dict[Bench, dict[tuple[str, str], str]] = {}


def _archive(bench: Bench, topic: str) -> str:
    known = _filled[bench]
    if not known["pylog", topic]:
        url = str(bench.fresh_folder("archive"))
        _copy(bench, topic, url)
        known["pylog", topic] = url
    return known["pylog", topic]


def _copy(bench: Bench, topic: str, url: str) -> int:
    """Copy a topic; how many bytes of batches."""
    with Admin(bench.broker("pylog").bootstrap_servers) as admin:
        copied = list(copy_topic(admin, open_archive(url, create=True), topic, CopyOptions(), print))
    return sum(each.segment.bytes for each in copied)


def read(bench: Bench, records: int) -> Runs:
    """Million rows a second of 1 kB: Spark's connector from Apache Kafka, pylog from an archive, and from its broker."""
    records = bench.records(records)

    def once(side: str) -> float:
        of = "pylog" if side == BY_BROKER else side
        job: dict[str, object] = {"do": "read", "columns": "all", "rows": records, "bytes": _VALUE_BYTES}
        if side == "ceiling":
            return records / _MILLION / bench.spark(side).run(**job)
        topic = _topic(bench, of, records)
        job |= {"bootstrap": bench.broker(of).bootstrap_servers, "topic": topic}
        if side == "pylog":
            job |= {"path": _archive(bench, topic)}
        elif side == BY_BROKER:
            job |= {"options": {"localReads": "never"}}
        return records / _MILLION / bench.spark(of).run(**job)

    return bench.take_turns({side: partial(once, side) for side in (*bench.sides, BY_BROKER, "ceiling")}, warm_up=2)


def scale(bench: Bench, records: int, figure: str) -> Runs:
    """Million rows a second of 1 kB that a broker has archived, read in the archive by two executors with a core each, and by one (`figure`: rate); or
    the broker's CPU seconds meanwhile, and when it is read through it (cpu)."""
    records = bench.records(records)
    broker = _cold_broker(bench, records)
    at = {"bootstrap": broker.bootstrap_servers, "topic": _COLD, "rows": records, "bytes": _VALUE_BYTES}

    def once(workers: int, reads: str) -> float:
        session = bench.spark("pylog", f"local-cluster[{workers},1,1024]")
        give_a_core_each(session.pid, workers)
        before = cpu_seconds(broker.pid)
        took_s = session.run(do="read", columns="all", options={"archiveReads": reads, "localReads": "never"}, **at)
        return records / _MILLION / took_s if figure == "rate" else cpu_seconds(broker.pid) - before

    if figure == "rate":
        sides = {"pylog": partial(once, 2, "auto"), ONE_EXECUTOR: partial(once, 1, "auto")}
    else:
        sides = {"pylog": partial(once, 2, "auto"), BY_BROKER: partial(once, 2, "never")}
    return bench.take_turns(sides, warm_up=2)


def copy(bench: Bench, records: int, figure: str) -> Runs:
    """MiB of batches a second that are copied into an archive on a local disk, or the CPU seconds of a GiB (`figure`: rate, cpu): of the copy,
    read back and synced, and of zstandard alone."""
    records = bench.records(records)
    topic = _topic(bench, "pylog", records)

    def once(side: str) -> float:
        cpu, began = time.process_time(), time.perf_counter()
        broker_cpu = cpu_seconds(bench.broker("pylog").pid)
        url = bench.fresh_folder("copied")
        size = _copy(bench, topic, str(url)) if side == "pylog" else _compress()
        took = time.perf_counter() - began
        cpu = time.process_time() - cpu + cpu_seconds(bench.broker("pylog").pid) - broker_cpu
        shutil.rmtree(url, ignore_errors=True)
        return size / _MIB / took if figure == "rate" else cpu * 1024 * _MIB / size

    words = b"".join(texts(_VALUE_BYTES))[:FRAME_BYTES]

    def _compress() -> int:
        compressor = zstandard.ZstdCompressor(level=CopyOptions().level, write_checksum=True)
        pieces = records * _VALUE_BYTES // len(words)
        for _ in range(pieces):
            compressor.compress(words)
        return pieces * len(words)

    return bench.take_turns({side: partial(once, side) for side in ("pylog", "ceiling")})


def _cold_broker(bench: Bench, records: int) -> LocalBroker:
    """A broker with a topic of which it has only the end itself, one that it has all of, and one that is empty; the same for all rows."""
    if bench not in _cold:
        settings = {"remote_log_manager_task_interval_ms": 500, "log_retention_check_interval_ms": 500}
        frequent = {"log_flush_offset_checkpoint_interval_ms": 500, "log_segment_delete_delay_ms": 0}
        folder = bench.fresh_folder("cold")
        broker = LocalBroker(folder / "data", archive_url=str(folder / "archive"), **settings, **frequent).start()
        bench.when_closed(broker.close)
        _cold[bench] = broker
        archived = {"remote.storage.enable": "true", "local.retention.bytes": str(8 * _MIB)}
        with Admin(broker.bootstrap_servers) as admin:
            for name, configs in ((_COLD, archived), (_WARM, {}), (_HOT, {})):
                admin.create_topic(name, 1, config={"segment.bytes": str(8 * _MIB), **configs})
            for name in (_COLD, _WARM):
                produce(broker.bootstrap_servers, name, records, texts(_VALUE_BYTES), {"linger.ms": 50}, 0)
            until(lambda: admin.offsets([(_COLD, 0, _EARLIEST_LOCAL)])[0].offset > records // 2)
    return _cold[bench]


#: Of each run.
_cold: dict[Bench, LocalBroker] = {}
_EARLIEST_LOCAL = -4


def round_trip(bench: Bench, records: int, percentile: float, reader: str = AS_OTHERS) -> Runs:
    """Milliseconds from produce to receive of one client, while another reads old records as fast as it can, with the policy `reader`."""
    broker, times = _cold_broker(bench, bench.records(records)), max(100, bench.records(_TRIPS))

    def once(side: str) -> float:
        with _scanning(broker, {"pylog": _COLD, BESIDE_LOCAL: _WARM}.get(side), reader):
            trips = round_trips_ms(broker.bootstrap_servers, _HOT, b"x" * _SMALL, times)
        return sorted(trips)[int(len(trips) * percentile)]

    return bench.take_turns({side: partial(once, side) for side in ("pylog", UNDISTURBED, BESIDE_LOCAL)})


@contextmanager
def _scanning(broker: LocalBroker, topic: str | None, reader: str) -> Iterator[None]:
    """Somebody reads a topic from its beginning on, again and again."""
    if topic is None:
        yield
        return
    words = [sys.executable, "-m", __name__, broker.bootstrap_servers, topic, reader]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as scan:
        assert scan.stdout is not None
        try:
            scan.stdout.readline()
            yield
        finally:
            scan.kill()


def scan(bench: Bench, records: int, figure: str) -> Runs:
    """MiB of records a second that librdkafka reads of what only the archive has, and of what the broker has (`figure`: rate); or the most
    memory that the broker ever had, in MiB (memory)."""
    records = bench.records(records)
    broker = _cold_broker(bench, records)

    def once(topic: str) -> float:
        took_s = consume(broker.bootstrap_servers, topic, records, _AT_ONCE)
        return records * _VALUE_BYTES / _MIB / took_s if figure == "rate" else peak_rss_mib(broker.pid)

    sides = {"pylog": _COLD, BESIDE_LOCAL: _WARM} if figure == "rate" else {"pylog": _COLD}
    return bench.take_turns({side: partial(once, topic) for side, topic in sides.items()})


def _scan_for_ever(servers: str, topic: str, reader: str) -> None:
    """Read a topic again and again; a line says that records come."""
    if reader == WHEN_IDLE:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "scan", "enable.partition.eof": True, **_AT_ONCE})
    said = False
    until_s = time.monotonic() + _MOST_S
    while time.monotonic() < until_s:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while not any(message.error() for message in consumer.consume(10_000, 1.0)):
            if not said:
                print("reading", flush=True)
                said = True


if __name__ == "__main__":
    _scan_for_ever(*sys.argv[1:])
