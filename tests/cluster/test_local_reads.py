"""Records out of brokers' own files while leaders die and replicas cut back what no other one has: no row is another one later.

It takes about half a minute: each round waits until a leader that was cut off is dead, replaced and back.
"""

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pylog_spark._native import Client, NativeError, RangeReader
from tests.harness.bench import Bench
from tests.harness.history import Place
from tests.harness.load import QUICK
from tests.harness.runs import rounds, seed
from tests.harness.waiting import pause, until

FAILOVERS = rounds("PYLOG_LOCAL_FAILOVERS", 3, 30)
# of one broker: tests/reading/test_local_reads.py
pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(120 + 20 * FAILOVERS)]

_TOPIC = "local-failover"
#: What a reader may say while nobody leads.
_PASSING = {"TIMED_OUT", "UNREACHABLE", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER"}


class Load:
    """A thread that writes, some of it so that an isolated leader takes it and loses it, and one that reads short ranges from files."""

    def __init__(self, bench: Bench, randomness: random.Random) -> None:
        self._bench, self._random = bench, randomness
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor()
        self._works: list[Future[None]] = []
        self.seen: dict[int, bytes] = {}
        self.reads = self.local = 0

    def __enter__(self) -> "Load":
        self._works = [self._pool.submit(self._write), self._pool.submit(self._read_all)]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown()

    def await_reads(self, number: int) -> None:
        """Wait for so many more, and raise what ended the reader."""
        enough = self.reads + number
        until(lambda: self.reads >= enough or any(work.done() for work in self._works), "some reads of the partition")
        self.check()

    def check(self) -> None:
        """Raise what ended one of the two."""
        for work in self._works:
            if work.done():
                work.result()

    def _write(self) -> None:
        common = {"bootstrap.servers": self._bench.servers, **QUICK, "linger.ms": 2, "message.timeout.ms": 5_000}
        safe, unsafe = Producer({**common, "acks": "all"}), Producer({**common, "acks": 1})
        number = 0
        while not pause(self._over, 0.005):
            for producer in (safe, unsafe):
                producer.produce(_TOPIC, b"%d %s" % (number, b"." * (number % 90)), partition=0)
                producer.poll(0)
                number += 1
        for producer in (safe, unsafe):
            producer.flush(60)

    def _read_all(self) -> None:
        client = Client({"bootstrap.servers": self._bench.servers})
        while not self._over.is_set():
            self._read(client)

    def _read(self, client: Client) -> None:
        try:
            end = client.list_offsets([(_TOPIC, 0, -1)])[0][2]
        except NativeError as error:
            raise_unless_passing(error)
            return
        if end > 0:
            # Mostly the newest: these are what a leader may lose.
            start = self._random.choice((max(0, end - 50), self._random.randrange(end)))
            self.note(start, end, local=True)

    def note(self, start: int, end: int, *, local: bool) -> None:
        """Read, and hold it against all that was read before."""
        config = {"bootstrap.servers": self._bench.servers, "default.api.timeout.ms": "15000"}
        reader = RangeReader(config, _TOPIC, 0, start, end, ["offset", "value"], local_reads=local)
        offset = start
        while not reader.at_end:
            try:
                batch = reader.next_batch(1_000)
            except NativeError as error:
                raise_unless_passing(error)
                break
            for row in [] if batch is None else _rows(batch):
                assert row[0] == offset
                assert self.seen.setdefault(*row) == row[1], (row, self.seen[row[0]], reader.why_not_local)
                offset += 1
        else:
            assert offset == end
        reader.stop()
        self.reads, self.local = self.reads + 1, self.local + reader.bytes_local


def raise_unless_passing(error: NativeError) -> None:
    """What a reader may say while nobody leads is no failure of the test."""
    if error.args[0] not in _PASSING:
        raise error


def _rows(batch: Any) -> list[tuple[int, bytes]]:
    return [tuple(row.values()) for row in pa.record_batch(batch).to_pylist()]


def test_no_row_of_a_file_is_another_one_after_leaders_died_and_replicas_were_cut(bench: Bench) -> None:
    place: Place = (_TOPIC, 0)
    bench.make_topic(_TOPIC, 1, min_insync_replicas=2)
    bench.count_truncations()
    with Load(bench, random.Random(seed("PYLOG_LOCAL_SEED"))) as load:
        for _ in range(FAILOVERS):
            bench.await_whole([_TOPIC])
            load.await_reads(20)
            leader = bench.leader(place)
            bench.isolate(leader)
            until(lambda leader=leader: bench.watcher.state(place).isr == (leader,), "the ISR shrinks to the leader")
            load.await_reads(20)
            bench.kill(leader)
            # It comes back behind another one's log: who is quicker than the election leads again, and cuts nothing.
            until(lambda leader=leader: bench.leader(place) not in (leader, -1), "another leader")
            bench.heal()
            load.await_reads(40)
        bench.await_whole([_TOPIC])
    load.check()
    assert load.local > 0
    newest = Client({"bootstrap.servers": bench.servers}).list_offsets([(_TOPIC, 0, -1)])[0][2]
    load.note(0, newest, local=False)
    assert len(load.seen) == newest
    assert bench.truncations > 0
