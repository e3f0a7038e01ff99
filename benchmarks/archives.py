"""Archives: how quickly logs are copied into one, and Spark reads it, beside Spark's connector on the topic itself."""

import shutil
import time
from functools import partial

from benchmarks.bench import PARTITIONS, Bench, Runs
from benchmarks.load import create_topic, produce, texts
from benchmarks.process import cpu_seconds
from pylog_spark.archive.container import zstandard_module
from pylog_spark.archive.store.copying import CopyOptions, copy_topic
from pylog_spark.archive.store.root import open_archive
from pylog_spark.archive.store.segment import FRAME_BYTES
from pylog_spark.client import Admin

_MILLION = 1_000_000
_MIB = 1 << 20
#: The side that reads the same topic from pylog's broker, over the network.
BY_BROKER = "by broker"
_VALUE_BYTES = 1_000


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
        compressor = zstandard_module().ZstdCompressor(level=CopyOptions().level, write_checksum=True)
        pieces = records * _VALUE_BYTES // len(words)
        for _ in range(pieces):
            compressor.compress(words)
        return pieces * len(words)

    return bench.take_turns({side: partial(once, side) for side in ("pylog", "ceiling")})
