"""A mirror into Apache Kafka: each committed record once, at offsets of its own, with settings and groups. Most of its time
is Kafka's start.

The source is a pylog; in a long run another Apache Kafka, too, which test_mirror.py copies in `make test`.
"""

import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from pylog_spark.client import Admin
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.runs import rounds
from tests.harness.waiting import until
from tests.mirror.support import MirrorProcess, committed, ends, rows, until_equal, write, write_in_transactions

# test_mirror.py, into pylog
pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.slow]

KILLS = rounds("PYLOG_MIRROR_KILLS", 2, 20)
TOGETHER = rounds("PYLOG_MIRRORS_ROUNDS", 2, 20)
_NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=BOTH)
def source(request: pytest.FixtureRequest) -> Iterator[str]:
    """Servers of the cluster that is copied."""
    with either(request) as servers:
        yield servers


@pytest.fixture
def copies_at(spark_kafka: str) -> str:
    """Servers of the Apache Kafka that gets the copies: another one than a source is."""
    return spark_kafka


@pytest.fixture
def name() -> str:
    """A name for a topic of the test's own."""
    return f"into-{next(_NUMBERS)}"


@pytest.fixture
def into_kafka(source: str, copies_at: str) -> Iterator[Callable[..., MirrorProcess]]:
    """Start mirrors; all are killed at the end."""
    running = []

    def start(*words: str) -> MirrorProcess:
        process = MirrorProcess(source, copies_at, *words)
        running.append(process)
        return process.start()

    yield start
    for process in running:
        process.__exit__(None, None, None)


def test_that_each_committed_record_is_there_once_with_its_key_time_and_headers(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    admin.create_topic(name, 3, config={"retention.ms": "-1"})
    write(source, name, (str(number) for number in range(500)), compression_type="zstd")
    write_in_transactions(source, name, f"{name}-first", 4)
    process = into_kafka("--topics", name)
    process.says("the target is no pylog that takes batches as they are")
    until_equal(source, copies_at, name, 3)
    write(source, name, (f"later-{number}" for number in range(500)))
    assert sum(map(len, until_equal(source, copies_at, name, 3))) == 500 + 2 * 20 + 500
    for partition in range(3):
        assert whole(source, name, partition) == whole(copies_at, name, partition)
    assert process.terminate() == 0


def whole(servers: str, topic: str, partition: int) -> list[tuple[object, ...]]:
    """Key, value, timestamp and headers of each committed record."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "whole",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and not message.error():
        found.append((message.key(), message.value(), message.timestamp(), message.headers()))
    consumer.close()
    return found


@pytest.mark.long  # test_mirror.py
def test_that_kills_of_the_mirror_neither_lose_nor_double_a_record(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    admin.create_topic(name, 4, config={"retention.ms": "-1"})
    process, chance = into_kafka("--topics", name), random.Random(7)
    for kill in range(KILLS):
        before, count = sum(ends(copies_at, name, 4)), chance.randrange(200, 20_000)
        write(source, name, (f"{kill}-{number}" for number in range(count)))
        # Somewhere between nothing and all of it.
        least = before + chance.randrange(count)
        until(lambda least=least: sum(ends(copies_at, name, 4)) >= least, "some is copied", 60)
        process.kill()
        process.start()
    until_equal(source, copies_at, name, 4)


@pytest.mark.long  # test_mirror.py
def test_that_two_mirrors_at_once_neither_lose_nor_double_a_record_and_one_goes_on_alone(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    admin.create_topic(name, 4, config={"retention.ms": "-1"})
    mirrors = [into_kafka("--topics", name) for _ in range(2)]
    for turn in range(TOGETHER):
        write(source, name, (f"{turn}-{number}" for number in range(5_000)))
        write_in_transactions(source, name, f"{name}-{turn}", 2)
    until_equal(source, copies_at, name, 4)
    mirrors[0].kill()
    write(source, name, (f"alone-{number}" for number in range(5_000)))
    until_equal(source, copies_at, name, 4)


@pytest.mark.long  # test_mirror.py
def test_that_settings_and_partitions_follow_and_what_is_somebody_elses_is_left_alone(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    other = f"{name}-other"
    with Admin(copies_at) as copies:
        copies.create_topic(other, 1)
        admin.create_topic(other, 1)
        write(source, other, ["not copied"])
        admin.create_topic(name, 1, config={"retention.ms": "86400000", "cleanup.policy": "compact,delete"})
        process = into_kafka("--topics", f"{name}.*", "--config", "max.message.bytes=2000000")
        process.says(f"topic {other} is in the target and no mirror of cluster")

        def given() -> dict[str, str | None]:
            (described,) = copies.configs("topic", [name])
            return {entry.name: entry.value for entry in described.configs if entry.source == "DYNAMIC_TOPIC_CONFIG"}

        wanted = {"retention.ms": "86400000", "cleanup.policy": "compact,delete", "max.message.bytes": "2000000"}
        until(lambda: given() == wanted, lambda: f"settings follow: {given()}")
        admin.create_partitions(name, 3)
        until(lambda: len(copies.topic(name).partitions) == 3, "partitions follow")
        write(source, name, (str(number) for number in range(100)))
        until_equal(source, copies_at, name, 3)
        assert ends(copies_at, other, 1) == [0]


@pytest.mark.long  # test_upkeep.py
def test_that_a_group_goes_on_in_the_copy_where_it_was_or_before_and_nothing_is_passed_over(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    admin.create_topic(name, 1, config={"retention.ms": "-1"})
    process = into_kafka("--topics", name, "--groups", f"{name}-.*")
    # Transactions, so that offsets differ: the source has aborted records and markers, the copy markers of its own.
    for turn in range(3):
        write_in_transactions(source, name, f"{name}-{turn}", 2)
        until_equal(source, copies_at, name, 1)
    end = ends(source, name, 1)[0]
    copied = committed(copies_at, name, 1, [])[0]

    def left(group: str) -> list[bytes]:
        """What the group has still to read in the copy, once it is there."""
        with Admin(copies_at) as copies:
            until(lambda: (name, 0) in copies.group_offsets(group), f"{group} is in the target", 60)
            offset = copies.group_offsets(group)[(name, 0)]
        return [value for at, value in copied if at >= offset]

    offsets = {f"{name}-{number}": offset for number, offset in enumerate((end, end // 2, end - 25))}
    for group, offset in offsets.items():
        admin.alter_group_offsets(group, {(name, 0): offset})
    for group, offset in offsets.items():
        wanted = [value for at, value in committed(source, name, 1, [])[0] if at >= offset]
        found = left(group)
        assert found[len(found) - len(wanted) :] == wanted
        assert len(found) - len(wanted) <= 20
    process.kill()
    process.start()
    admin.alter_group_offsets(f"{name}-after", {(name, 0): end})
    assert left(f"{name}-after") == []


@pytest.mark.long  # test_mirror.py
def test_that_a_record_which_the_copy_does_not_take_stops_its_partition_alone_and_is_named(
    source: str, copies_at: str, admin: Admin, into_kafka: Callable[..., MirrorProcess], name: str
) -> None:
    small, large = f"{name}-small", f"{name}-large"
    for topic in (small, large):
        admin.create_topic(topic, 1, config={"max.message.bytes": "900000"})
    process = into_kafka("--topics", f"{name}.*", "--config", "max.message.bytes=100000")
    write(source, large, ["x" * 300_000], compression_type="none")
    write(source, small, ["taken"])
    until_equal(source, copies_at, small, 1)
    process.says("does not go on: ")
    process.says(large)
    assert rows(copies_at, large, 1) == [[]]
    write(source, small, ["taken, too"])
    until_equal(source, copies_at, small, 1)
