"""A consume-transform-produce loop under kill -9 of the loop and of the broker: `read_committed` readers see every record
exactly once, in order.

2 rounds in `make test`, 6 in a long run, 100 by `make crash-transactions`.
"""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pylog_spark.testing import LocalBroker
from tests.crash.transform import FENCED, STAND_STILL
from tests.harness.children import PipedChild
from tests.harness.runs import rounds, seed
from tests.harness.waiting import until
from tests.interop.clients import create_topic, values_seen

ROUNDS = rounds("PYLOG_TRANSACTION_ROUNDS", 2, 6)
SEED = seed("PYLOG_CRASH_SEED")
PARTITIONS = 2
_RECORDS_PER_ROUND = 200
_DEADLINE_S = 60
# The end of a transaction takes about a millisecond: a kill somewhere in this time finds it before, while or after it ends.
_LAST_MOMENT_S = 0.002
_SETTINGS = {
    "transaction_state_log_num_partitions": 2,
    "offsets_topic_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
    "log_segment_bytes": 20_000,
}


class Loop:
    """The process that transforms, started again whenever it is gone."""

    def __init__(self, servers: str) -> None:
        self._command = [sys.executable, "-m", "tests.crash.transform", servers]
        self._process: PipedChild | None = None
        self.open = False
        self.committed = 0

    def start(self) -> None:
        """Begin, or go on."""
        self._process = PipedChild(self._command, stdin=subprocess.DEVNULL, errors=True, cwd=Path(__file__).parents[2])

    def commit(self, count: int) -> None:
        """Wait until `count` more transactions are committed."""
        wanted = self.committed + count
        until(lambda: self._listened() and self.committed >= wanted, f"{count} transactions are committed", _DEADLINE_S)

    def stop_open(self, feed: Callable[[], None]) -> None:
        """Let it stand still in a transaction whose records are written; `feed` gives it some, since it may have come to the end."""
        assert self._process is not None
        self._process.signal(STAND_STILL)
        feed()
        until(self._stands_still, "it stands still in a transaction", _DEADLINE_S)

    def go_on(self) -> None:
        """After `stop_open`."""
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def _stands_still(self) -> bool:
        self.listen(0.1)
        assert self._process is not None
        return _state(self._process.pid) == "T" and self.open

    def _listened(self) -> bool:
        self.listen(0.1)
        return True

    def listen(self, seconds: float) -> None:
        """Take what it prints within `seconds`; start it again when it was fenced."""
        assert self._process is not None
        self._take(self._process.lines_within(seconds))
        if self._process.finished:
            assert self._process.wait() == FENCED, self._process.errors
            self.start()

    def _take(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.open = line == "written"
            self.committed += line == "committed"

    def kill(self) -> bool:
        """kill -9; whether a transaction was open."""
        assert self._process is not None
        self._process.kill()
        self._take(self._process.waiting_lines())
        was_open, self.open = self.open, False
        return was_open

    def close(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if self._process is not None and self._process.running:
            self.kill()


def _state(pid: int) -> str:
    """The letter for the state of a process in the operating system."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def fill(servers: str, first: int, count: int) -> None:
    """Put records `first` and so on into every partition of `in`."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    for number in range(first, first + count):
        for partition in range(PARTITIONS):
            producer.produce("in", b"%d" % number, partition=partition)
    assert producer.flush(_DEADLINE_S) == 0


def read(servers: str, partition: int, isolation: str) -> list[int]:
    """All of a partition of `out`."""
    return [int(value) for value in values_seen(servers, "out", partition, isolation, _DEADLINE_S)]


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_consume_transform_produce_is_exactly_once_under_kill_9_of_client_and_broker(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_CRASH_SEED to repeat")
    broker = LocalBroker(tmp_path, **_SETTINGS).start()
    servers = broker.bootstrap_servers
    loop = Loop(servers)
    bitten, total = 0, ROUNDS * _RECORDS_PER_ROUND
    try:
        for topic in ("in", "out"):
            create_topic(servers, topic, PARTITIONS)
        loop.start()
        for number in range(ROUNDS):
            halves = [number * _RECORDS_PER_ROUND, number * _RECORDS_PER_ROUND + _RECORDS_PER_ROUND // 2]
            fill(servers, halves[0], _RECORDS_PER_ROUND // 2)
            loop.commit(randomness.randrange(1, 6))
            victim = randomness.choice(("client", "broker", "both"))
            loop.stop_open(lambda first=halves[1]: fill(servers, first, _RECORDS_PER_ROUND // 2))
            if number % 2:  # at any moment around the end of a transaction; else while one is open, for sure
                loop.go_on()
                loop.listen(randomness.choice((0, randomness.random())) * _LAST_MOMENT_S)
            if victim != "broker":
                bitten += loop.kill()
            if victim != "client":
                bitten += loop.open and victim == "broker"
                broker.kill()
                if victim == "broker" and number % 2 == 0:
                    loop.go_on()
                broker.start()
            if victim != "broker":
                loop.start()

        def ended() -> bool:
            loop.listen(0.5)
            return all(len(read(servers, partition, "read_committed")) >= total for partition in range(PARTITIONS))

        until(ended, "the loop comes to the end", _DEADLINE_S + ROUNDS)
        loop.kill()
        for partition in range(PARTITIONS):
            assert read(servers, partition, "read_committed") == list(range(total))
        aborted = sum(len(read(servers, number, "read_uncommitted")) - total for number in range(PARTITIONS))
    finally:
        loop.close()
        broker.close()
    print(f"{bitten} of {ROUNDS} kills found a transaction open; {aborted} records were aborted")
    assert bitten >= ROUNDS / 2, f"only {bitten} of {ROUNDS} kills found a transaction open"
    assert aborted > 0 or ROUNDS < 20, "no transaction was ever aborted"
