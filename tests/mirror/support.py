"""``pylog mirror`` as a process, and what its tests compare: the bytes of both clusters' logs."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark._native import RawConnection
from pylog_spark.client import Admin
from pylog_spark.client.admin import LATEST
from pylog_spark.client.errors import LogError
from pylog_spark.results.topics import CreateTopicResult
from tests.harness.secured import is_served
from tests.harness.waiting import until

COMMAND = (sys.executable, "-m", "pylog_spark", "mirror")
_ROOT = str(Path(__file__).parent.parent.parent)
#: Fetch in the last version that names topics.
_FETCH_VERSION = 12


def environment() -> dict[str, str]:
    """The environment of the command."""
    return {**os.environ, "PYTHONPATH": _ROOT}


class MirrorProcess:
    """A mirror that runs, until it is stopped or killed.

    Parameters
    ----------
    source, target : str
        Servers of both clusters.
    words : str
        Further words of the command line.
    """

    def __init__(self, source: str, target: str, *words: str) -> None:
        self._words = [*COMMAND, "--from", source, "--to", target, "--interval", "0.2", *words]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  Closed with the process.
        self._child: subprocess.Popen[str] | None = None

    def start(self) -> "MirrorProcess":
        """Start it, and wait until it is ready."""
        before = self.lines.count("pylog mirror ready")
        self._child = subprocess.Popen(self._words, env=environment(), stdout=self._log, stderr=self._log, text=True)
        until(lambda: self.lines.count("pylog mirror ready") > before or self.ended, "the mirror is ready", 60)
        assert not self.ended, self.lines
        return self

    @property
    def lines(self) -> str:
        """All that it printed."""
        return os.pread(self._log.fileno(), 1 << 24, 0).decode()

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._child is None or self._child.poll() is not None

    def says(self, text: str, deadline_s: float = 30) -> None:
        """Wait until it prints a text."""
        until(lambda: text in self.lines, lambda: f"{text!r} is said; it said {self.lines}", deadline_s)

    def kill(self) -> None:
        """kill -9."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def terminate(self) -> int:
        """SIGTERM; gives the exit code."""
        assert self._child is not None
        self._child.terminate()
        code = self._child.wait(30)
        self._child = None
        return code

    def __enter__(self) -> "MirrorProcess":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._log.close()


class ServedAdmin(Admin):
    """One whose topics are served when it has created them: Apache Kafka answers a little before its brokers know them."""

    def create_topic(self, name: str, *more: Any, **given: Any) -> CreateTopicResult:
        """See `Admin.create_topic`."""
        created = super().create_topic(name, *more, **given)
        until(lambda: is_served(self, name, created.num_partitions), f"{name} is served")
        return created


def ends(servers: str, topic: str, partitions: int, isolation_level: str = "read_uncommitted") -> list[int]:
    """Where the partitions end; -1 for all while the topic is not there."""
    with Admin(servers, {"default.api.timeout.ms": "5000"}) as admin:
        try:
            found = admin.offsets([(topic, number, LATEST) for number in range(partitions)], isolation_level)
        except LogError:
            return [-1] * partitions
    return [offset.offset for offset in found]


def until_copied(source: str, target: str, topic: str, partitions: int = 1, deadline_s: float = 60) -> list[int]:
    """Wait until the copy ends where the source does; gives where."""
    wanted = ends(source, topic, partitions)
    until(
        lambda: ends(target, topic, partitions) == wanted,
        lambda: f"{topic} ends at {wanted}; it ends at {ends(target, topic, partitions)}",
        deadline_s,
    )
    return wanted


def raw_batches(servers: str, topic: str, partition: int, start: int, end: int) -> bytes:
    """The batches of a partition from the one at `start` to the one before `end`, as they are stored, but for the leader epochs, which are the cluster's own."""
    host, port = servers.split(",")[0].rsplit(":", 1)
    connection = RawConnection(host, int(port))
    whole = bytearray()
    while start < end:
        asked = {"partition": partition, "fetch_offset": start, "partition_max_bytes": 1 << 20}
        request = {
            "max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 24, "session_epoch": -1,
            "topics": [{"topic": topic, "partitions": [asked]}],
        }  # fmt: skip
        answer = json.loads(connection.call("Fetch", _FETCH_VERSION, json.dumps(request)))
        (found,) = answer["responses"][0]["partitions"]
        assert found["error_code"] == 0, found
        records = bytes.fromhex(found["records"])
        while len(records) >= 12 and start < end:
            size = 12 + int.from_bytes(records[8:12], "big")
            if size > len(records):
                break
            whole += records[:12] + records[16:size]
            start = int.from_bytes(records[0:8], "big") + int.from_bytes(records[23:27], "big") + 1
            records = records[size:]
    connection.close()
    return bytes(whole)


def committed(servers: str, topic: str, partitions: int, ends_at: Sequence[int]) -> list[list[tuple[int, bytes]]]:
    """(offset, value) of all that a consumer of committed records sees, by partition."""
    settings = {"bootstrap.servers": servers, "group.id": "mirror-check", "enable.auto.commit": False,
                "isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True}  # fmt: skip
    consumer = Consumer(settings)
    found: list[list[tuple[int, bytes]]] = [[] for _ in range(partitions)]
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    at_end: set[int] = set()

    def read() -> bool:
        for message in consumer.consume(10_000, 0.2):
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                at_end.add(message.partition())
            else:
                found[message.partition()].append((message.offset(), message.value()))
        return len(at_end) == partitions

    try:
        until(read, f"{topic} is read to {ends_at}", 120, pause_s=0)
    finally:
        consumer.close()
    return found


def rows(servers: str, topic: str, partitions: int) -> list[list[bytes]]:
    """The values that a consumer of committed records sees, by partition, in order."""
    return [[value for _, value in part] for part in committed(servers, topic, partitions, [])]


def until_equal(source: str, copies_at: str, topic: str, partitions: int) -> list[list[bytes]]:
    """Wait until the copy has what the source has, and as often; gives that."""
    wanted = rows(source, topic, partitions)
    count = sum(map(len, wanted))

    def lag() -> int:
        said = lags(source, copies_at, topic)
        return sum(each["lag"] for each in said) if len(said) == partitions else -1

    # The end of a source's last transaction is a marker, which is copied by passing it.
    until(lambda: lag() == 0, lambda: f"{topic} is copied: {count} records, lag {lag()}", 60)
    assert rows(copies_at, topic, partitions) == wanted
    return wanted


def lags(source: str, copies_at: str, topic: str) -> list[dict[str, int]]:
    """What ``pylog mirror lag`` says."""
    command = [*COMMAND, "lag", "--from", source, "--to", copies_at, "--topics", topic, "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found


def write(servers: str, topic: str, values: Iterable[str], **settings: object) -> None:
    """Write records over all partitions, acknowledged; with ``batch_num_messages`` all batches but the last are as large, however slow the machine is."""
    linger_ms = 60_000 if "batch_num_messages" in settings else 5
    producer = Producer({"bootstrap.servers": servers, "linger.ms": linger_ms, **_dotted(settings)})
    # A producer that knows the topic puts each record where its batch grows; else they go there while `flush` sends what there is.
    producer.list_topics(topic, 30)
    for number, value in enumerate(values):
        producer.produce(topic, value, key=f"key-{number % 7}", headers={"number": str(number)})
    assert producer.flush(30) == 0


def write_in_transactions(servers: str, topic: str, name: str, count: int) -> None:
    """Write some transactions, of which every other one is aborted, and wait until all of the topic have ended in its logs: Apache Kafka writes
    their markers after it has answered."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(30)
    for number in range(count):
        producer.begin_transaction()
        for each in range(20):
            producer.produce(topic, f"{name}-{number}-{each}", key=str(each))
        if number % 2:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    with Admin(servers) as admin:
        partitions = len(admin.topic(topic).partitions)
    until(
        lambda: ends(servers, topic, partitions, "read_committed") == ends(servers, topic, partitions),
        f"no transaction is open in {topic}",
    )


def _dotted(settings: Mapping[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}
