"""Apache Kafka's MirrorMaker 2 between Apache Kafka and pylog, both directions in one process, exactly once: records, settings, offsets of groups.

It takes half a minute: it starts six connectors, and commits twice a second.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.mirror.support import committed, ends
from tests.peers.tools import java_command

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.timeout(280)]

_SETTINGS = {
    "clusters": "kafka, pylog",
    "kafka->pylog.enabled": "true",
    "pylog->kafka.enabled": "true",
    "topics": "mm-.*",
    "groups": "mm-.*",
    "tasks.max": "2",
    "kafka.exactly.once.source.support": "enabled",
    "pylog.exactly.once.source.support": "enabled",
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
    "sync.topic.acls.enabled": "false",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "offset.flush.interval.ms": "500",
    # The group's offset is found again by the newest pair of offsets before it.
    "offset.lag.max": "0",
    **{
        f"{of}.replication.factor": "1"
        for of in (
            "checkpoints.topic",
            "heartbeats.topic",
            "offset-syncs.topic",
            "offset.storage",
            "status.storage",
            "config.storage",
        )
    },
    "replication.factor": "1",
}
_PARTITIONS = 2
#: How long topics keep records, in milliseconds, before and after a change; both longer than the records are old.
KEPT, KEPT_LATER = "7654321987654", "8765432198765"


class Direction(NamedTuple):
    """A topic of one cluster and what MirrorMaker calls it in the other."""

    source: str
    target: str
    topic: str
    copy: str


@pytest.fixture(scope="module")
def pylog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A pylog of this file's own: MirrorMaker copies whatever topics it is told to."""
    with LocalBroker(tmp_path_factory.mktemp("pylog"), group_initial_rebalance_delay_ms=0) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def directions(kafka: str, pylog: str) -> list[Direction]:
    """Both, with records that are there before."""
    found = [
        Direction(kafka, pylog, "mm-to-pylog", "kafka.mm-to-pylog"),
        Direction(pylog, kafka, "mm-to-kafka", "pylog.mm-to-kafka"),
    ]
    for direction in found:
        with Admin(direction.source) as admin:
            admin.create_topic(direction.topic, _PARTITIONS, config={"retention.ms": KEPT})
        produce(direction, range(50))
    return found


@pytest.fixture(scope="module")
def mirror_maker(
    kafka: str, pylog: str, directions: list[Direction], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """It runs; gives what it prints."""
    folder = tmp_path_factory.mktemp("mirror-maker")
    settings = {**_SETTINGS, "kafka.bootstrap.servers": kafka, "pylog.bootstrap.servers": pylog}
    file, log = folder / "mm2.properties", folder / "log"
    file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    with log.open("w") as printed:
        running = subprocess.Popen(
            [*java_command("org.apache.kafka.connect.mirror.MirrorMaker"), str(file)],
            stdout=printed,
            stderr=printed,
            cwd=folder,
        )
        try:
            yield log
        finally:
            running.terminate()
            try:
                running.wait(30)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def produce(direction: Direction, numbers: range) -> None:
    """Records with keys, headers and times, each number in one partition."""
    producer = Producer({"bootstrap.servers": direction.source, "linger.ms": 5})
    for number in numbers:
        producer.produce(
            direction.topic, b"v%d" % number, b"k%d" % number if number % 3 else None, partition=number % _PARTITIONS,
            headers=[("h", b"%d" % number)], timestamp=1_700_000_000_000 + number,
        )  # fmt: skip
    assert producer.flush(30) == 0


Record = tuple[int, bytes | None, bytes | None, object, object]


def records(servers: str, topic: str, count: int) -> list[Record]:
    """The first `count` committed records, in some order that depends on nothing but them."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reads",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
    found: list[Record] = []

    def is_enough() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.key(), message.value(), message.headers(), message.timestamp()))
        return len(found) >= count

    try:
        until(is_enough, lambda: f"{count} records are in {topic}; it has {len(found)}", 120, 0.0)
    finally:
        consumer.close()
    return sorted(found, key=repr)


def setting(servers: str, topic: str) -> str | None:
    """How long a topic keeps records, in milliseconds."""
    with Admin(servers) as admin:
        (described,) = admin.configs("topic", [topic])
    return next(entry.value for entry in described.configs if entry.name == "retention.ms")


def test_mirror_maker_copies_both_ways_records_settings_and_offsets_of_groups(
    mirror_maker: Path, directions: list[Direction]
) -> None:
    for direction in directions:
        copied = records(direction.target, direction.copy, 50)
        assert copied == records(direction.source, direction.topic, 50), mirror_maker.read_text()[-3000:]
        produce(direction, range(50, 80))
        assert records(direction.target, direction.copy, 80) == records(direction.source, direction.topic, 80)
        # The markers of its transactions stand in between: it is exactly once.
        assert sum(ends(direction.target, direction.copy, _PARTITIONS)) > 80
        assert setting(direction.target, direction.copy) == KEPT
        with Admin(direction.source) as admin:
            admin.alter_configs("topic", direction.topic, {"retention.ms": KEPT_LATER})
        until(
            lambda each=direction: setting(each.target, each.copy) == KEPT_LATER,
            lambda: f"a changed setting reaches the copy: {mirror_maker.read_text()[-3000:]}",
        )
        group = Consumer({"bootstrap.servers": direction.source, "group.id": f"mm-group-{direction.topic}"})
        group.commit(offsets=[TopicPartition(direction.topic, 0, 30)], asynchronous=False)
        group.close()
        copy = Consumer({"bootstrap.servers": direction.target, "group.id": f"mm-group-{direction.topic}"})

        def offset(copy: Consumer = copy, name: str = direction.copy) -> int:
            (found,) = copy.committed([TopicPartition(name, 0)], timeout=60)
            return int(found.offset)

        until(lambda offset=offset: offset() > 0, lambda: mirror_maker.read_text()[-3000:], 60)
        # Copies have other offsets where transactions end in between: a group goes on there with all that it has not read, and less than all.
        goes_on = offset()
        copy.close()
        there = committed(direction.target, direction.copy, _PARTITIONS, ())[0]
        ahead = [value for offset, value in there if offset >= goes_on]
        assert ahead[-10:] == [b"v%d" % number for number in range(60, 80, 2)]
        assert len(ahead) < len(there) == 40
