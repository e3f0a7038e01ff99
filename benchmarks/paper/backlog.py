"""`python -m benchmarks.paper.backlog`: what the case study says of a log that nobody has read yet.

A topic with a backlog of many gigabytes beside one without, on one broker, in turns: the speed of a producer, and the time from a producer to a reader at
the tail. Then reading the backlog's beginning, when the page cache has nothing of it, beside the disk alone, and when the broker has just been started.

The cache is emptied of the log's files alone (`posix_fadvise`), which needs no rights, and harms nobody else.
"""

import json
import mmap
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

import click
import pyarrow as pa
from rich.console import Console

from benchmarks import pages
from benchmarks.brokers import PylogBroker
from benchmarks.load import create_topic, delete_topic, fill, produce, round_trips_ms
from benchmarks.memory import touch_free_memory
from pylog_spark._native import RangeReader

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "paper" / "backlog.json"
_GIGABYTE = 10**9
_SPARE_BYTES = 4 * _GIGABYTE
_BACKLOG_VALUE = b"x" * 10_000
_MESSAGE = b"x" * 200
_FULL_BATCHES: dict[str, object] = {"batch.num.messages": 10_000, "linger.ms": 50}
_DIRECT_PIECE_BYTES = 4 << 20
#: A percentile of few trips is a matter of chance.
_TRIPS = 4_000
_TAIL_ROUNDS = 2
_BACKLOG, _FRESH = "backlog", "fresh"


@dataclass
class Claim:
    """One claim: `pylog` against `beside`, runs of both in turns, and whether the ratio of the medians is as it should be; without a target it
    is there to explain another one."""

    key: str
    title: str
    unit: str
    pylog: list[float]
    beside: list[float]
    target: str
    ratio: float
    met: bool | None


def at_least(key: str, title: str, unit: str, factor: float, pylog: list[float], beside: list[float]) -> Claim:
    """A claim about speeds."""
    ratio = median(pylog) / median(beside)
    return Claim(key, title, unit, pylog, beside, f">= {factor:g} x", ratio, ratio >= factor)


def at_most(key: str, title: str, unit: str, factor: float, pylog: list[float], beside: list[float]) -> Claim:
    """A claim about costs."""
    ratio = median(pylog) / median(beside)
    return Claim(key, title, unit, pylog, beside, f"<= {factor:g} x", ratio, ratio <= factor)


def compared(key: str, title: str, unit: str, pylog: list[float], beside: list[float]) -> Claim:
    """Two figures without a target."""
    return Claim(key, title, unit, pylog, beside, "", median(pylog) / median(beside), None)


class Backlog:
    """A broker with a backlog. Use as a context manager; nothing of it is left afterwards.

    Raises
    ------
    click.ClickException
        Where the disk has no room for it.
    """

    def __init__(self, gigabytes: float, rounds: int, scale: float) -> None:
        base = Path(os.environ.get("BENCH_DIR") or _ROOT / ".cache" / "bench")
        base.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(base).free
        needed = int(gigabytes * _GIGABYTE) + (_SPARE_BYTES if gigabytes >= 1 else 0)
        if free < needed:
            raise click.ClickException(
                f"A backlog of {gigabytes:g} GB needs {needed / _GIGABYTE:.0f} GB of free disk, and {free / _GIGABYTE:.0f} GB "
                "are free: name fewer with --gigabytes, or another disk with BENCH_DIR."
            )
        self._rounds, self._scale = rounds, scale
        self._records = max(1, int(gigabytes * _GIGABYTE / len(_BACKLOG_VALUE)))
        self._folder = Path(tempfile.mkdtemp(dir=base, prefix="backlog-"))
        self._broker = PylogBroker(self._folder, {"log.segment.bytes": str(256 << 20)})

    def __enter__(self) -> "Backlog":
        try:
            self._broker.start()
            create_topic(self._servers, _BACKLOG, 1)
            fill(self._servers, _BACKLOG, self._records, _BACKLOG_VALUE, 1)
            self._sync()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the broker and delete the data."""
        self._broker.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _servers(self) -> str:
        return self._broker.bootstrap_servers

    def _segments(self) -> list[Path]:
        return sorted((self._broker.data_dir / f"{_BACKLOG}-0").glob("*.log"))

    def _sync(self) -> None:
        for file in self._segments():
            descriptor = os.open(file, os.O_RDONLY)
            os.fdatasync(descriptor)
            os.close(descriptor)

    def tail(self) -> Claim:
        """The 99th percentile of the time from a producer to a reader at the end of the log, in ms."""
        times = max(20, int(_TRIPS * self._scale))

        def once(topic: str) -> float:
            trips = sorted(round_trips_ms(self._servers, topic, _MESSAGE, times))
            return trips[int(len(trips) * 0.99)]

        runs = self._in_turns(_TAIL_ROUNDS * self._rounds, once)
        return at_most("tail", "reader at the tail, 99th percentile", "ms", 1.2, runs[_BACKLOG], runs[_FRESH])

    def producer(self) -> Claim:
        """Messages a second into the topic with the backlog, and into one without."""
        records = int(1_000_000 * self._scale)

        def once(topic: str) -> float:
            return records / produce(self._servers, topic, records, [_MESSAGE], _FULL_BATCHES, 0)

        runs = self._in_turns(self._rounds, once)
        return at_least("producer", "producer, with the backlog", "messages/s", 0.95, runs[_BACKLOG], runs[_FRESH])

    def _in_turns(self, rounds: int, once: Callable[[str], float]) -> dict[str, list[float]]:
        """What `once` finds with the topic with the backlog, and with one made for each turn; the first turn of both does not count."""
        runs: dict[str, list[float]] = {_BACKLOG: [], _FRESH: []}
        for turn in range(-1, rounds):
            for topic in (_BACKLOG, _FRESH) if turn % 2 else (_FRESH, _BACKLOG):
                figure = once(topic) if topic == _BACKLOG else self._with_fresh(once)
                if turn >= 0:
                    runs[topic].append(figure)
        return runs

    def _with_fresh(self, once: Callable[[str], float]) -> float:
        create_topic(self._servers, _FRESH, 1)
        try:
            return once(_FRESH)
        finally:
            delete_topic(self._servers, _FRESH)

    def _beginning(self, most_bytes: int) -> tuple[list[Path], int]:
        """The first whole segments, and how many records they have."""
        *whole, last = self._segments()
        chosen = [
            file for number, file in enumerate(whole) if (number + 1) * file.stat().st_size <= most_bytes
        ] or whole[:1]
        following = [*whole, last][len(chosen)]
        return chosen, int(following.stem)

    def _cold(self, files: list[Path], megabytes: float, read: Callable[[], float]) -> dict[str, list[float]]:
        """Megabytes a second when the page cache has nothing of `files`: of `read`, of the disk alone, and through the page cache.

        The page cache gives the files' pages back just before, and takes these first: a virtual machine whose host takes free memory
        back gets other pages anew from it, which is slower than the disk.
        """

        def cold_read() -> float:
            bytes_before = read_from_disk(self._broker.pid)
            speed = read()
            if read_from_disk(self._broker.pid) - bytes_before < 0.9 * megabytes * 1e6:
                raise RuntimeError("the page cache still had the files that were to be cold")
            return speed

        measures = {
            "pylog": cold_read,
            "direct": lambda: megabytes / read_files(files, os.O_DIRECT),
            "plain": lambda: megabytes / read_files(files, 0),
        }
        runs: dict[str, list[float]] = {name: [] for name in measures}
        for turn in range(self._rounds):
            for name in reversed(measures) if turn % 2 else measures:
                read_files(files, 0)
                forget(files)
                runs[name].append(measures[name]())
        return runs

    def reads(self, most_bytes: int) -> list[Claim]:
        """Megabytes a second of the backlog's beginning: cold beside the disk, and after a restart beside before it."""
        files, records = self._beginning(most_bytes)
        megabytes = sum(file.stat().st_size for file in files) / 1e6

        def read() -> float:
            return megabytes / read_range(self._servers, _BACKLOG, records)

        cold = self._cold(files, megabytes, read)
        before, after = [], []
        read()
        for _ in range(self._rounds):
            before.append(read())
            self._broker.stop()
            self._broker.start()
            after.append(read())
        from_disk = read_from_disk(self._broker.pid) / 1e6
        return [
            at_least("cold", "read of what the page cache does not have, beside the disk", "MB/s", 0.9, cold["pylog"], cold["direct"]),
            compared("cold-plain", "  beside a program that reads the files through the page cache", "MB/s", cold["pylog"], cold["plain"]),
            compared("restart", "first read after a restart of the broker, beside before it", "MB/s", after, before),
            Claim("warm", "  read from the disk for it", "MB", [from_disk], [megabytes], "<= 0.01 x",
                  from_disk / megabytes, from_disk <= 0.01 * megabytes),
        ]  # fmt: skip


def forget(files: list[Path]) -> None:
    """Take what is written of `files` out of the page cache."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def read_files(files: list[Path], flag: int) -> float:
    """Seconds to read `files` one after the other in large pieces; with ``O_DIRECT`` past the page cache."""
    piece = mmap.mmap(-1, _DIRECT_PIECE_BYTES)
    started = time.perf_counter()
    for file in files:
        descriptor = os.open(file, os.O_RDONLY | flag)
        while os.readv(descriptor, [piece]) == len(piece):
            pass
        os.close(descriptor)
    return time.perf_counter() - started


def read_range(servers: str, topic: str, records: int) -> float:
    """Seconds in which pylog's own reader, that of Spark's tasks, makes Arrow of the first `records` of partition 0, over the network."""
    started = time.perf_counter()
    reader = RangeReader({"bootstrap.servers": servers}, topic, 0, 0, records, ["value"])
    rows = sum(len(batch) for batch in pa.RecordBatchReader.from_stream(reader))
    if rows != records:
        raise RuntimeError(f"{rows} of {records} records came")
    return time.perf_counter() - started


def read_from_disk(pid: int) -> int:
    """Bytes that the process has made the kernel read from a disk."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    (count,) = (int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))
    return count


@click.command()
@click.option("--gigabytes", default=20.0, show_default=True, help="Size of the backlog.")
@click.option("--rounds", default=5, show_default=True, help="Runs of each figure; one more warms up.")
@click.option("--scale", default=1.0, show_default=True, help="Factor on messages sent, to try it.")
@click.option("--read-gigabytes", default=2.0, show_default=True, help="How much of the backlog is read at a time.")
@click.option("--save/--no-save", default=False, help=f"Keep the figures in {_RESULTS.relative_to(_ROOT)}.")
def main(gigabytes: float, rounds: int, scale: float, read_gigabytes: float, save: bool) -> None:
    """Measure pylog with a backlog, beside itself without one and beside the disk."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the broker and its data go too
    log = Console()
    claims = []
    with Backlog(gigabytes, rounds, scale) as backlog:
        if scale >= 1:
            touch_free_memory()
        for measure in (backlog.tail, backlog.producer, lambda: backlog.reads(int(read_gigabytes * _GIGABYTE))):
            found = measure()
            claims += found if isinstance(found, list) else [found]
    for claim in claims:
        verdict = {True: f"({claim.target}) met", False: f"({claim.target}) MISSED", None: ""}[claim.met]
        log.print(
            f"{claim.title}: {median(claim.pylog):,.4g} beside {median(claim.beside):,.4g} {claim.unit}, "
            f"{claim.ratio:.3g} x {verdict}",
            soft_wrap=True,
        )
    if save:
        document = {
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "cores": os.cpu_count(), "kernel": platform.release(), "rounds": rounds, "gigabytes": gigabytes,
            "claims": [asdict(claim) for claim in claims],
        }  # fmt: skip
        _RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        pages.main()


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.paper.backlog")
