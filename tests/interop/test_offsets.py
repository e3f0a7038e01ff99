"""Committed offsets over a real client: they survive kill -9 and restart, Kafka's own tool reads them, no request waits for ever."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.brokers import SEVERAL, Brokers
from tests.harness.waiting import until
from tests.peers.kafka import dump_log

pytestmark = pytest.mark.cluster

PARTITIONS = 3
TIMEOUT_S = 30


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    """A broker with the topic `t`."""
    # Kafka's default, which a cluster for tests does not have.
    more = {"offsets_topic_num_partitions": 50} if SEVERAL else {}
    with Brokers(tmp_path, num_partitions=PARTITIONS, **more) as running:
        create_topic(running)
        yield running


def create_topic(broker: Brokers) -> None:
    """Make `t`."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(TIMEOUT_S)


def consumer(broker: Brokers, group: str, **settings: object) -> Consumer:
    """A consumer that assigns itself."""
    wanted = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, **wanted, **settings})


def committed(broker: Brokers, group: str) -> list[int]:
    """The group's offsets of `t`; -1001 stands for none."""
    asking = consumer(broker, group)
    try:
        found = until(lambda: _asked(asking), "the coordinator answers")
        return [partition.offset for partition in found]
    finally:
        asking.close()


def _asked(asking: Consumer) -> list[TopicPartition] | None:
    """What it has committed; None where its coordinator has moved, which this call of librdkafka's does not look up again."""
    try:
        return asking.committed([TopicPartition("t", n) for n in range(PARTITIONS)], timeout=TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_COORDINATOR:
            raise
        return None


def commit(broker: Brokers, group: str, offsets: list[int], metadata: str = "") -> None:
    """Commit an offset for each partition of `t`, from 0 on."""
    asking = consumer(broker, group)
    try:
        wanted = [TopicPartition("t", n, offset, metadata) for n, offset in enumerate(offsets)]
        done = asking.commit(offsets=wanted, asynchronous=False)
        assert [partition.error for partition in done] == [None] * len(offsets)
    finally:
        asking.close()


@pytest.mark.long  # tests/broker/test_internal_topics.py
def test_committed_offsets_survive_kill_9_and_a_clean_restart(broker: Brokers) -> None:
    groups = {f"group-{n}": [n, n + 1, 2**40 + n] for n in range(20)}
    for group, offsets in groups.items():
        commit(broker, group, offsets, "why")
    broker.kill()
    broker.start()
    assert {group: committed(broker, group) for group in groups} == groups
    commit(broker, "group-0", [77])
    broker.restart()
    assert committed(broker, "group-0") == [77, 1, 2**40]


def test_closing_a_consumer_that_commits_by_itself_does_not_wait(broker: Brokers) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", b"x", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    # The first group of all makes the topic of the coordinators, which takes its time.
    commit(broker, "g", [0])

    def closing_s() -> float:
        reading = consumer(broker, "g", **{"enable.auto.commit": True})
        reading.assign([TopicPartition("t", 0, 0)])
        message = reading.poll(TIMEOUT_S)
        assert message is not None
        assert message.value() == b"x"
        began = time.monotonic()
        reading.close()
        assert committed(broker, "g")[0] == 1
        return time.monotonic() - began

    # What a busy machine keeps waiting once.
    assert any(closing_s() < 2 for _ in range(3))


def test_a_deleted_group_has_no_offsets_and_a_deleted_topic_takes_its_own_along(broker: Brokers) -> None:
    commit(broker, "kept", [1, 2, 3])
    commit(broker, "gone", [1, 2, 3])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_consumer_groups(["gone"])["gone"].result(TIMEOUT_S)
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups(["gone"])["gone"].result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
    assert [group.group_id for group in admin.list_consumer_groups().result(TIMEOUT_S).valid] == ["kept"]
    assert committed(broker, "gone") == [-1001] * PARTITIONS
    admin.delete_topics(["t"])["t"].result(TIMEOUT_S)

    def left() -> list[TopicPartition]:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("kept")])["kept"]
        return asked.result(TIMEOUT_S).topic_partitions

    # The group's coordinator may be another broker than the one that answered.
    until(lambda: not left(), "the coordinator has heard of it")


def test_internal_topics_are_marked_compacted_and_closed_to_producers(broker: Brokers) -> None:
    commit(broker, "g", [1])
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics("__consumer_offsets")
    assert len(metadata.topics["__consumer_offsets"].partitions) == 50
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("__consumer_offsets", b"x", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert [error.code() for error in errors] == [KafkaError.TOPIC_EXCEPTION]
    assert committed(broker, "g")[0] == 1


def test_offsets_expire_after_their_retention_and_not_before(tmp_path: Path) -> None:
    """The shortest retention is a minute: the machine's own tests let days pass. Here only that nothing goes too soon."""
    with Brokers(tmp_path, offsets_retention_minutes=1, offsets_retention_check_interval_ms=50) as broker:
        create_topic(broker)
        commit(broker, "g", [5])
        for _ in range(20):
            assert committed(broker, "g")[0] == 5


@pytest.mark.peers
def test_kafkas_dump_log_reads_committed_offsets(broker: Brokers) -> None:
    commit(broker, "my-group", [11, 12], "a text")
    AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=TIMEOUT_S)
    broker.terminate()
    segments = [file for file in broker.data_dir.glob("__consumer_offsets-*/*.log") if file.stat().st_size]
    assert len(segments) == 1
    printed = dump_log(segments, "--offsets-decoder")
    for partition, offset in enumerate([11, 12]):
        assert f'"group":"my-group","topic":"t","partition":{partition}' in printed, printed
        assert f'"offset":{offset}' in printed, printed
    # confluent-kafka sends the text with its terminating NUL.
    assert '"metadata":"a text' in printed, printed
