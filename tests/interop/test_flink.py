"""Apache Flink on pylog: a job that copies a topic exactly once by its Kafka connector, killed and gone on with from its checkpoint.

Flink keeps offsets and prepared transactions in its checkpoints: the job that goes on ends transactions that another process began.
It costs about 20 s, most of them the two starts of Flink.
"""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.peers.jars import classpath
from tests.peers.tools import QUICK

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.timeout(240)]

_JOB = Path(__file__).with_name("FlinkCopy.java")
_PARTITIONS = 2
_WAIT_S = 90.0
# Flink's serializers look into classes of Java's own.
_OPEN = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util")]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalBroker(tmp_path_factory.mktemp("flink")) as running:
        yield running.bootstrap_servers


@contextmanager
def job(log: Path, *words: object) -> Iterator[None]:
    """The job; killed at the end."""
    command = ["java", *QUICK, *_OPEN, "-Xmx512m", "-cp", classpath("flink"), str(_JOB), *map(str, words)]
    with log.open("wb") as printed:
        running = subprocess.Popen(command, stdout=printed, stderr=printed)
        try:
            yield
        finally:
            running.kill()
            running.wait()


def produce(servers: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % _PARTITIONS)
    assert producer.flush(_WAIT_S) == 0


class Copied:
    """How often each number is seen in the copy by who reads committed records."""

    def __init__(self, servers: str, topic: str) -> None:
        settings = {"bootstrap.servers": servers, "group.id": "reads", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
        self.seen: Counter[int] = Counter()

    def has(self, count: int) -> bool:
        for message in self._consumer.consume(1_000, 0.1):
            assert message.error() is None
            self.seen[int(message.value())] += 1
        return len(self.seen) >= count

    def close(self) -> None:
        self._consumer.close()


def newest(checkpoints: Path) -> Path:
    """The newest checkpoint that is complete."""
    return max(
        checkpoints.glob("*/chk-*/_metadata"), key=lambda file: int(file.parent.name.removeprefix("chk-"))
    ).parent


def test_a_job_of_flink_that_is_killed_goes_on_from_its_checkpoint_and_has_each_record_once(
    servers: str, tmp_path: Path
) -> None:
    with Admin(servers) as admin:
        for topic in ("from-flink", "to-flink"):
            admin.create_topic(topic, _PARTITIONS)
    checkpoints, log = tmp_path / "checkpoints", tmp_path / "log"
    words = (servers, "from-flink", "to-flink", checkpoints.as_uri())
    copied = Copied(servers, "to-flink")
    try:
        produce(servers, "from-flink", range(500))
        with job(log, *words):
            until(lambda: copied.has(500), lambda: f"500 are copied: {log.read_text()[-3000:]}", _WAIT_S, 0)
            # These are in a transaction that is open, prepared or committed when it is killed.
            produce(servers, "from-flink", range(500, 1_000))
            until(lambda: copied.has(501), lambda: f"it goes on: {log.read_text()[-3000:]}", _WAIT_S, 0)
        produce(servers, "from-flink", range(1_000, 1_200))
        with job(log, *words, newest(checkpoints).as_uri()):
            until(lambda: copied.has(1_200), lambda: f"all are copied: {log.read_text()[-3000:]}", _WAIT_S, 0)
            with Admin(servers) as admin:
                until(lambda: sum(admin.group_offsets("flink").values()) == 1_200, "its progress is that of a group")
        copied.has(0)
        assert copied.seen == Counter(range(1_200))
    finally:
        copied.close()
