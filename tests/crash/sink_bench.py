"""What the tests of the sink under kill -9 share: the folder through which processes are stopped at steps, the driver as a
process with everything that it started, the rows that go in, and the check of what a plain reader of committed data sees.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark.audit import check as audit_of
from pylog_spark.client.admin import LATEST, Admin
from pylog_spark.offsets.position import Position
from pylog_spark.sink.decision import TOPIC as DECISIONS
from pylog_spark.testing import LocalBroker
from tests.cluster.coordinators import TRANSACTIONS
from tests.crash.sink_driver import ROOT, Plan
from tests.harness.brokers import REPLICAS, Brokers
from tests.harness.processes import descendants
from tests.harness.waiting import until
from tests.interop.clients import create_topic, values_seen

SOURCE_PARTITIONS = 2
SINK_PARTITIONS = 2
#: Where the sinks say what they have written, in benches whose plan says so.
AUDIT = "audit"
# Rows that each partition of the source gets at once: two micro-batches.
ROWS = 40
DEADLINE_S = float(os.environ.get("PYLOG_SINK_DEADLINE_S", "180"))


class Control:
    """The folder in which stops are asked for; see `steps/sink_steps.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._left: set[int] = set()
        for name in ("armed", "reached"):
            (folder / name).mkdir(parents=True)

    def arm(self, step: str, key: str) -> None:
        """Ask the next process that comes to `step` of the write `key` to wait there."""
        (self.folder / "armed" / _file_name(step, key)).touch()

    def waiting(self, step: str, key: str) -> int | None:
        """The process that waits there."""
        for path in (self.folder / "reached").iterdir():
            name, _, pid = path.name.rpartition("@")
            if name == _file_name(step, key) and int(pid) not in self._left and alive(int(pid)):
                return int(pid)
        return None

    def reached(self, step: str, key: str, deadline_s: float = DEADLINE_S) -> int:
        """Wait until a process waits there; its id."""
        pid = until(lambda: self.waiting(step, key), f"{step} of {key} reached", deadline_s)
        assert isinstance(pid, int)
        return pid

    def release(self) -> None:
        """Let all go on that wait, but for those that were left behind."""
        for path in (self.folder / "reached").iterdir():
            if int(path.name.rpartition("@")[2]) not in self._left:
                path.unlink()

    def leave(self, pids: Iterable[int]) -> None:
        """Let these wait on: the processes of a driver that was killed."""
        self._left.update(pids)

    def release_files(self) -> set[int]:
        """Let those go on that were left behind: which."""
        left, self._left = self._left, set()
        self.release()
        return left

    def release_left(self) -> None:
        """Let those go on that were left behind, and wait for their end."""
        left = self.release_files()
        until(lambda: not any(map(alive, left)), f"the end of {left}", DEADLINE_S)


def _file_name(step: str, key: str) -> str:
    """As `steps/sink_steps.py` has it: keys of batches have a slash."""
    return f"{step}@{key}".replace("/", ":")


def alive(pid: int) -> bool:
    """Whether a process is there and is no zombie of the operating system."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pids: Iterable[int]) -> None:
    """kill -9, and wait until they are gone."""
    pids = list(pids)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(alive, pids)), f"the end of {pids}", DEADLINE_S)


class Driver:
    """A driver process; `start` again after `kill` goes on with the same checkpoints."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[str] | None = None
        self._output: Any = None
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as this object

    def start(self) -> Driver:
        """Start it and wait until its queries run."""
        assert self._process is None
        self._output = tempfile.NamedTemporaryFile("w+", prefix="driver-")  # noqa: SIM115 - as above
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.sink_driver", self.plan.json()],
            cwd=ROOT,
            env={**os.environ, **self.plan.environment()},
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._log,
            text=True,
        )
        self._wait_for_line("started")
        return self

    @property
    def java(self) -> int:
        """The process id of its Java half."""
        return int(self._wait_for_line("java")["java"])

    @property
    def running(self) -> bool:
        """Whether it was started, and neither killed nor stopped since."""
        return self._process is not None

    def executors(self) -> list[int]:
        """Process ids of executors of their own (local-cluster)."""
        return [pid for pid in descendants(self.java) if b"CoarseGrainedExecutorBackend" in _command(pid)]

    def pythons(self) -> list[int]:
        """Process ids of the Python processes that its Java half has started, and of the workers that they forked."""
        return [pid for pid in descendants(self.java) if b"pyspark" in _command(pid)]

    def executor_of(self, pid: int) -> int:
        """The executor that the Python worker `pid` works for."""
        return next(executor for executor in self.executors() if pid in descendants(executor))

    def failures(self) -> list[str]:
        """Why queries had to be started again."""
        return [line["why"] for line in self._lines() if "failed" in line]

    def kill(self, *, workers: bool) -> list[int]:
        """kill -9 of its Java and Python halves; the rest of what it started too, or it is left behind: its process ids."""
        assert self._process is not None
        below = [pid for pid in descendants(self._process.pid) if pid != self.java]
        kill([self.java, *(below if workers else [])])
        self._process.kill()
        self._process.wait()
        self._close()
        return [pid for pid in below if alive(pid)]

    def signal(self, number: int) -> None:
        """Send a signal to all of its processes."""
        assert self._process is not None
        for pid in [*descendants(self._process.pid), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """Stop it in peace, or wait for its end where it comes by itself."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            code = self._process.wait(DEADLINE_S)
            self._close()
            assert code == 0, self.log()

    def close(self) -> None:
        """Whatever state it is in: leave nothing behind."""
        if self._process is not None:
            kill(descendants(self._process.pid))
            self._process.kill()
            self._process.wait()
            self._close()
        self._log.close()

    def log(self) -> str:
        """The end of what its processes wrote to standard error."""
        self._log.seek(0)
        return self._log.read()[-8000:]

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None
        self._output.close()

    def _lines(self) -> list[dict[str, Any]]:
        text = Path(self._output.name).read_text()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

    def _wait_for_line(self, word: str) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            return next((line for line in self._lines() if word in line), None)

        return until(found, f"the driver prints {word}", DEADLINE_S)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class Query:
    """One query of the driver: its sink, its checkpoint, and its id, which is the key of its writes."""

    def __init__(self, checkpoints: Path, sink: str) -> None:
        self.sink = sink
        self.checkpoint = checkpoints / sink
        self.key = str(uuid.uuid4())
        self.checkpoint.mkdir(parents=True)
        # Spark takes the id that it finds there.
        (self.checkpoint / "metadata").write_text(json.dumps({"id": self.key}))

    def newest(self, log: str) -> int:
        """The newest batch in ``offsets`` or ``commits``; -1 when there is none."""
        folder = self.checkpoint / log
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def has_committed(self, rows: int) -> bool:
        """Whether all micro-batches that were begun are committed, and the source was read up to so many rows."""
        newest = self.newest("offsets")
        if newest < 0 or self.newest("commits") != newest:
            return False
        try:
            text = (self.checkpoint / "offsets" / str(newest)).read_text()
        except FileNotFoundError:
            return False
        return _sum_of_offsets(text) >= rows

    def forget_newest_commit(self) -> int:
        """Remove the newest file of ``commits``, as if Spark had died before it wrote it; its number."""
        number = self.newest("commits")
        for name in (str(number), f".{number}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)
        return number


class SinkBench:
    """One broker or three, the source topic and one sink for each of `names`.

    Of three brokers one leads the first partition of every sink, one coordinates all transactions, and one controls, three
    different ones where that can be.
    """

    def __init__(self, folder: Path, names: Iterable[str], brokers: int = REPLICAS, **plan: Any) -> None:
        self.broker = Brokers(
            folder / "data",
            brokers,
            transaction_state_log_num_partitions=min(2, 4 - brokers),
            offsets_topic_num_partitions=1,
        )
        self.broker.start()
        self.servers = self.broker.bootstrap_servers
        self.control = Control(folder / "control")
        self.queries = {name: Query(folder / "checkpoints", f"sink-{name}") for name in names}
        self.sinks = [query.sink for query in self.queries.values()]
        create_topic(self.servers, "source", SOURCE_PARTITIONS)
        create_topic(self.servers, AUDIT, 1)
        self._create_sinks()
        self.filled = 0
        checkpoints, control = str(folder / "checkpoints"), str(self.control.folder)
        self.driver = Driver(Plan(self.servers, "source", self.sinks, checkpoints, control, **plan))

    def _create_sinks(self) -> None:
        if self.broker.cluster is None:
            for sink in self.sinks:
                create_topic(self.servers, sink, SINK_PARTITIONS)
            return
        # The first transaction makes the topic of the coordinators.
        Producer({"bootstrap.servers": self.servers, "transactional.id": "first", "log_level": 0}).init_transactions(
            DEADLINE_S
        )
        busy = [self.victim("coordinator").broker_id, self.victim("controller").broker_id]
        order = sorted(range(1, 1 + len(self.broker.all)), key=lambda broker_id: (broker_id in busy, broker_id))
        replicas = [order[number:] + order[:number] for number in range(SINK_PARTITIONS)]
        admin = AdminClient({"bootstrap.servers": self.servers})
        wanted = [NewTopic(sink, SINK_PARTITIONS, replica_assignment=replicas) for sink in self.sinks]
        for made in admin.create_topics(wanted).values():
            made.result(DEADLINE_S)

    def victim(self, role: str) -> LocalBroker:
        """The broker that now is the `leader` of every sink's first partition, the `coordinator` of all transactions, or the
        `controller`."""
        cluster = self.broker.cluster
        assert cluster is not None
        if role == "controller":
            return cluster.wait_for(cluster.controller, "a controller")
        if role == "coordinator":
            return cluster.wait_for_leader(TRANSACTIONS, 0)
        leaders = {sink: cluster.wait_for_leader(sink, 0) for sink in self.sinks}
        assert len(set(leaders.values())) == 1, {sink: leader.broker_id for sink, leader in leaders.items()}
        return leaders[self.sinks[0]]

    def kill(self, role: str) -> None:
        """kill -9 of the broker in a role, once every replica is in sync again after the death before."""
        cluster = self.broker.cluster
        assert cluster is not None
        for topic in (*self.sinks, "source", TRANSACTIONS, DECISIONS):
            cluster.wait_in_sync(topic, DEADLINE_S)
        self.victim(role).kill()

    def close(self) -> None:
        """Leave nothing behind."""
        self.driver.close()
        self.broker.close()

    def fill(self, count: int = ROWS) -> None:
        """Put `count` more numbered rows into each partition of the source."""
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 0})
        for number in range(self.filled, self.filled + count):
            for partition in range(SOURCE_PARTITIONS):
                value = row(partition, number)
                producer.produce("source", value, b"key-%d" % (number % 7), partition=partition)
        assert producer.flush(DEADLINE_S) == 0
        self.filled += count

    def stop_everywhere(self) -> dict[str, int]:
        """Let every query come to the step that it is named after, and wait there: the processes by step. Starts the driver
        if need be."""
        for step, query in self.queries.items():
            self.control.arm(step, query.key)
        self.fill()
        if not self.driver.running:
            self.driver.start()
        return {step: self._reached(step, query) for step, query in self.queries.items()}

    def _reached(self, step: str, query: Query) -> int:
        found = self._waiting_or_done(step, query)
        if found is None:
            # A query that runs may have met the rows of one partition before those of the other: its batches then had one
            # transaction each, and nothing between two EndTxn.
            self.fill()
            found = self._waiting_or_done(step, query)
        assert found is not None, f"all of {query.sink} was written without a stop at {step}"
        return found

    def _waiting_or_done(self, step: str, query: Query) -> int | None:
        """The process that waits at the step, or None when the query has come to its end without one."""

        def found() -> bool:
            return self.control.waiting(step, query.key) is not None or query.has_committed(self._rows)

        until(found, lambda: f"{step} of {query.key} reached ({self.driver.failures()})", DEADLINE_S)
        return self.control.waiting(step, query.key)

    def finish(self) -> None:
        """Let everything come to its end, and check it."""
        self.control.release()
        self.fill()
        if not self.driver.running:
            self.driver.start()
        self.idle()
        self.control.release_left()
        self.fill()
        self.idle()
        self.check()

    def expected(self) -> list[bytes]:
        """All rows that a sink must have, sorted."""
        return sorted(row(partition, number) for partition in range(SOURCE_PARTITIONS) for number in range(self.filled))

    def idle(self) -> None:
        """Wait until every query has committed all that there is."""
        for query in self.queries.values():
            until(
                lambda query=query: query.has_committed(self._rows),
                lambda query=query: f"all of {query.sink} is written ({self.driver.failures()})",
                DEADLINE_S,
            )

    @property
    def _rows(self) -> int:
        """How many rows are in the source."""
        return SOURCE_PARTITIONS * self.filled

    def check(self) -> None:
        """Every sink has every row once, in the order of its task, and the audit says so; nothing is left open."""
        expected = self.expected()
        for query in self.queries.values():
            check_rows(self.servers, query.sink, expected)
        assert open_transactions(self.servers) == []
        if self.driver.plan.options.get("auditTopic"):
            audit = audit_of(self.servers, AUDIT, self.sinks, delay_ms=None)
            assert (audit.differences, audit.records) == ((), len(self.sinks) * len(expected))
        ends = [
            (query.sink, partition, LATEST) for query in self.queries.values() for partition in range(SINK_PARTITIONS)
        ]
        with Admin(self.servers) as admin:
            stable = admin._client.list_offsets(ends, "read_committed")
            assert stable == admin._client.list_offsets(ends, "read_uncommitted"), "a transaction holds readers back"


def row(partition: int, number: int) -> bytes:
    """The row `number` of a partition of the source."""
    return b"%d:%d:%s" % (partition, number, b"x" * 40)


def check_rows(servers: str, sink: str, expected: list[bytes]) -> None:
    """What a plain reader of committed data finds in `sink`: each row once, and the rows of one source partition in order."""
    partitions = [read(servers, sink, partition) for partition in range(SINK_PARTITIONS)]
    rows = sorted(value for values in partitions for value in values)
    twice, missing = len(rows) - len(set(rows)), len(set(expected) - set(rows))
    assert (len(rows), twice, missing) == (len(expected), 0, 0), (
        f"{sink}: {len(rows)} rows instead of {len(expected)}, {twice} more than once, {missing} missing"
    )
    assert _hash(rows) == _hash(expected)
    for values in partitions:
        for source in range(SOURCE_PARTITIONS):
            numbers = [int(value.split(b":")[1]) for value in values if value.startswith(b"%d:" % source)]
            assert numbers == sorted(numbers), f"{sink}: the order of source partition {source} is lost"


def read(servers: str, topic: str, partition: int) -> list[bytes]:
    """The committed values of a partition, by librdkafka."""
    return values_seen(servers, topic, partition, "read_committed", DEADLINE_S)


def open_transactions(servers: str) -> list[str]:
    """Transactional ids whose transaction has not ended."""
    states = ("Ongoing", "PrepareCommit", "PrepareAbort")
    with Admin(servers) as admin:
        return sorted(transaction.transactional_id for transaction in admin.transactions(states))


def _hash(rows: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


def _sum_of_offsets(text: str) -> int:
    """The sum of all partitions' offsets in a file of ``offsets``."""
    return sum(Position.from_document(json.loads(text.splitlines()[-1])).offsets.values())
