"""A query that reads small micro-batches on the driver and large ones by tasks, while driver, Python workers and broker are killed.

The query copies a topic into another one, each partition into the one of the same number, so that the sink's partitions must
have the source's rows in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from confluent_kafka import Producer

from pylog_spark.client.admin import LATEST, Admin
from pylog_spark.testing import LocalBroker
from tests.crash.sink_bench import DEADLINE_S, Driver, Query, kill, open_transactions, read, row
from tests.crash.sink_driver import Plan
from tests.harness.waiting import until
from tests.interop.clients import create_topic

PARTITIONS = 3
#: What the driver reads, `prefetchMaxBytes`: some 500 rows.
_MOST_BYTES = 65_536
#: Rows that each partition gets at once.
_FEW, _MANY = 20, 2_000
#: How many of the kills wait for rows in the sink, which are not committed then; the others come earlier.
_WRITTEN = 0.7
#: From its plan to its first rows, and from these to its commit, a micro-batch takes about so long.
_PART_S = 0.1
_READS = re.compile(r"pylog reads (on the driver|in \d+ tasks) from \S+: (.+)")


class MixedBench:
    """The broker, the driver with its query, and the rows that go in.

    Parameters
    ----------
    folder : Path
        For all files.
    randomness : Random
        Draws how many rows are few, when a kill falls, and on which Python process.
    """

    def __init__(self, folder: Path, randomness: Random) -> None:
        self._random = randomness
        self._log = folder / "pylog.log"
        self.broker = LocalBroker(folder / "data", transaction_state_log_num_partitions=1)
        self.broker.start()
        servers = self.broker.bootstrap_servers
        for topic in ("source", "sink"):
            create_topic(servers, topic, PARTITIONS)
        settings = {"enable.idempotence": True, "reconnect.backoff.max.ms": 200, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": servers, **settings})
        self._filled = 0
        self.query = Query(folder / "checkpoints", "sink")
        plan = Plan(
            servers, "source", ["sink"], str(folder / "checkpoints"), control="", master="local[2,4]",
            per_trigger=PARTITIONS * _MANY, log=str(self._log), read={"prefetchMaxBytes": str(_MOST_BYTES)},
            columns=["key", "value", "partition"],
        )  # fmt: skip
        self.driver = Driver(plan)
        #: How many kills fell on a micro-batch that was planned and not committed.
        self.bitten = 0
        self.failures = 0

    @property
    def _rows(self) -> int:
        return PARTITIONS * self._filled

    def push(self, count: int) -> None:
        """Hand `count` more rows for each partition to the producer."""
        for number in range(self._filled, self._filled + count):
            for partition in range(PARTITIONS):
                self._producer.produce("source", row(partition, number), b"key", partition=partition)
        self._filled += count
        self._producer.poll(0)

    def strike(self, victim: str, is_burst: bool) -> None:
        """Write rows, kill the victim while a micro-batch that has some of them is under way, start what was killed again, and wait
        until all is copied."""
        with Admin(self.broker.bootstrap_servers) as admin:
            begun, ends = self.query.newest("offsets"), self._ends(admin)
            self.push(_MANY if is_burst else self._random.randint(1, _FEW))
            until(lambda: self.query.newest("offsets") > begun, "a micro-batch is planned", DEADLINE_S)
            if self._random.random() < _WRITTEN:
                until(lambda: self._ends(admin) != ends, "rows of it are written", DEADLINE_S, pause_s=0.001)
        # Somewhere in the next part of the micro-batch, or a little later.
        self._producer.poll(self._random.random() * _PART_S)
        self.push(self._random.randint(0, 2))
        again = self._killers[victim](self)
        self.bitten += self.query.newest("offsets") > self.query.newest("commits")
        again()
        self.catch_up()

    def _ends(self, admin: Admin) -> object:
        """Where the sink's partitions end, rows of open transactions included."""
        return admin._client.list_offsets(
            [("sink", number, LATEST) for number in range(PARTITIONS)], "read_uncommitted"
        )

    def catch_up(self) -> None:
        """Wait until all rows are copied and committed."""
        assert self._producer.flush(DEADLINE_S) == 0
        until(
            lambda: self.query.has_committed(self._rows),
            lambda: f"all is written ({self.driver.failures()})",
            DEADLINE_S,
        )

    def _kill_driver(self) -> Callable[[], object]:
        self.failures += len(self.driver.failures())
        self.driver.kill(workers=self._random.random() < 0.5)
        return self.driver.start

    def _kill_worker(self) -> Callable[[], object]:
        kill([self._random.choice(self.driver.pythons())])
        return lambda: None

    def _kill_broker(self) -> Callable[[], object]:
        self.broker.kill()
        return self.broker.start

    _killers = {"driver": _kill_driver, "worker": _kill_worker, "broker": _kill_broker}

    def check(self) -> None:
        """The sink has every row once, in the order of its source partition, and nothing is left open."""
        servers = self.broker.bootstrap_servers
        for partition in range(PARTITIONS):
            expected = [row(partition, number) for number in range(self._filled)]
            assert read(servers, "source", partition) == expected
            rows = read(servers, "sink", partition)
            twice, missing = len(rows) - len(set(rows)), len(set(expected) - set(rows))
            assert (len(rows), twice, missing) == (len(expected), 0, 0), (
                f"{twice} rows more than once, {missing} missing"
            )
            assert rows == expected, f"the order of source partition {partition} is lost"
        assert open_transactions(servers) == []

    def reads(self) -> dict[str, set[str]]:
        """The ranges that were read on the ``driver`` and by ``tasks``, as the log says."""
        text = self._log.read_text()
        assert "does not take rows from the driver" not in text
        found: dict[str, set[str]] = {"driver": set(), "tasks": set()}
        for way, ranges in _READS.findall(text):
            found["driver" if way == "on the driver" else "tasks"].add(ranges)
        return found

    def close(self) -> None:
        """Leave nothing behind."""
        self.driver.close()
        self.broker.close()
