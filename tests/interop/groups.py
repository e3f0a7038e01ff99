"""Groups of real clients: members as processes, what they read, and a producer that goes on meanwhile."""

import functools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness import waiting
from tests.harness.children import PipedChild
from tests.peers.jars import classpath
from tests.peers.tools import QUICK

ROOT = Path(__file__).parents[2]
PARTITIONS = 6
DEADLINE_S = 90
#: Members need longer than most: each is a process, and one that was killed is missed only when its session ends.
until = functools.partial(waiting.until, deadline_s=DEADLINE_S, pause_s=0.05)


class Member:
    """One member; a thread collects what it prints."""

    def __init__(
        self, client: str, servers: str, group: str, topic: str, settings: dict[str, Any] | None = None
    ) -> None:
        self.read: list[tuple[int, int, str]] = []
        self.assignments: list[int] = []
        self.revocations = 0
        self.uncommitted: list[str] = []
        own = (servers, group, topic)
        commands = {"kcat": lambda: _kcat(*own), "java": lambda: _java(*own, settings or {})}
        command = commands.get(client, lambda: _python(client, *own, settings or {}))()
        self.process = PipedChild(command, cwd=ROOT, stdin=subprocess.DEVNULL)
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self) -> None:
        for line in self.process:
            kind, *rest = line.split()
            if kind == "assigned":
                self.assignments.append(int(rest[0]))
            elif kind == "revoked":
                self.revocations += 1
            elif kind.startswith("Partition:"):
                # As Kafka's console consumer prints it.
                self.read.append((int(kind.split(":")[1]), int(rest[0].split(":")[1]), rest[1]))
            elif kind == "uncommitted":
                self.uncommitted.append(rest[0])
            else:
                self.read.append((int(kind), int(rest[0]), rest[1]))

    def partitions(self) -> int:
        """How many partitions it has now."""
        return self.assignments[-1] if self.assignments else 0

    def kill(self) -> None:
        """SIGKILL: no farewell, its session has to end."""
        self.process.kill()
        self._end()

    def leave(self) -> None:
        """SIGTERM: it says that it goes."""
        self.process.signal(signal.SIGTERM)
        self._end()

    def _end(self) -> None:
        self.process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)


def _python(client: str, servers: str, group: str, topic: str, settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-m", "tests.interop.group_member", client, servers, group, topic, json.dumps(settings)]


def _java(servers: str, group: str, topic: str, settings: dict[str, Any]) -> list[str]:
    """Kafka's console consumer."""
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    own = {"auto.commit.interval.ms": "200", **settings}
    words = [word for name, value in own.items() for word in ("--command-property", f"{name}={value}")]
    for shown in ("print.partition", "print.offset"):
        words += ["--formatter-property", f"{shown}=true"]
    where = ["--bootstrap-server", servers, "--group", group, "--topic", topic, "--from-beginning"]
    # What it logs goes to stderr, so that stdout has records only.
    return ["java", *QUICK, "-cp", classpath("tools"), tool, *where, *words]


def _kcat(servers: str, group: str, topic: str) -> list[str]:
    options = [
        "session.timeout.ms=6000", "heartbeat.interval.ms=500", "auto.offset.reset=earliest",
        "auto.commit.interval.ms=200", "partition.assignment.strategy=range",
    ]  # fmt: skip
    words = [word for option in options for word in ("-X", option)]
    return ["kcat", "-b", servers, "-G", group, *words, "-q", "-u", "-f", "%p %o %s\n", topic]


class Group:
    """A topic, a group, and the members that were started; all are stopped at the end."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name, self.topic = servers, f"group-{name}", name
        self.members: list[Member] = []
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._sent: set[str] = set()
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
        self._stop = threading.Event()
        self._pump: threading.Thread | None = None
        for made in self.admin.create_topics([NewTopic(self.topic, PARTITIONS)]).values():
            made.result(30)

    def __enter__(self) -> "Group":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_producing()
        for member in self.members:
            if member.process.running:
                member.kill()

    def start(self, client: str, settings: dict[str, Any] | None = None) -> Member:
        """Another member."""
        member = Member(client, self.servers, self.name, self.topic, settings)
        self.members.append(member)
        return member

    def produce(self, count: int) -> None:
        """Write `count` more records, in turn to every partition."""
        for _ in range(count):
            value, partition = f"record-{len(self._sent)}", len(self._sent) % PARTITIONS
            self._producer.produce(self.topic, value, partition=partition)
            self._sent.add(value)
            self._ends[partition] += 1
        assert self._producer.flush(DEADLINE_S) == 0

    def keep_producing(self) -> None:
        """Write on, a few hundred records a second, until `stop_producing`."""
        self._pump = threading.Thread(target=self._pumping, daemon=True)
        self._pump.start()

    def _pumping(self) -> None:
        while not waiting.pause(self._stop, 0.1):
            self.produce(30)

    def stop_producing(self) -> None:
        """Nothing more is written."""
        self._stop.set()
        if self._pump is not None:
            self._pump.join()

    def read(self) -> set[str]:
        """What all members together have read."""
        return {value for member in self.members for _, _, value in member.read}

    def until_all_is_read(self) -> None:
        """Whether every record was read by some member."""
        until(lambda: self.read() >= self._sent, f"all of {len(self._sent)} records are read")

    def reconnect(self) -> None:
        """An administrator that knows nothing of the broker's former life: librdkafka 2.16's sends nothing after that."""
        self.admin = AdminClient({"bootstrap.servers": self.servers})

    def committed(self) -> dict[int, int]:
        """Committed offsets by partition."""
        asked = [ConsumerGroupTopicPartitions(self.name)]
        answer = self.admin.list_consumer_group_offsets(asked)[self.name].result(30)
        return {partition.partition: partition.offset for partition in answer.topic_partitions}

    def ends(self) -> dict[int, int]:
        """How many records were written, by partition."""
        return dict(self._ends)

    def sent(self) -> set[str]:
        """All records that were written."""
        return set(self._sent)

    def describe(self) -> Any:
        """The group as an administrator sees it."""
        return self.admin.describe_consumer_groups([self.name])[self.name].result(30)

    def state(self) -> str:
        """Its state's name."""
        return str(self.describe().state.name)


def gaps(read: Iterable[tuple[int, int, str]]) -> int:
    """How often one member's offsets of a partition did not go on where they were."""
    last: dict[int, int] = {}
    found = 0
    for partition, offset, _ in read:
        found += partition in last and offset != last[partition] + 1
        last[partition] = offset
    return found
