"""Compacted topics of a real broker: what confluent-kafka's consumers, admin and producers see."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from pylog_spark.testing import LocalBroker
from tests.harness.runs import mostly_long
from tests.harness.waiting import until

TIMEOUT_S = 30
KEYS = 20
COMPACT = {
    "cleanup.policy": "compact",
    "segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


@pytest.fixture(scope="module")
def compacting(tmp_path_factory):
    """A broker that looks for dirty logs again and again, for the tests that do not stop it."""
    with LocalBroker(tmp_path_factory.mktemp("compacting"), log_cleaner_backoff_ms=20) as running:
        yield running


def create(admin, name, **config):
    settings = {**COMPACT, **{key.replace("_", "."): value for key, value in config.items()}}
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(TIMEOUT_S)


def produce(servers, topic, records, **config):
    """Write (key, value) pairs in batches of ten; gives the errors."""
    errors = []
    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 10, **config})
    for key, value in records:
        producer.produce(topic, value, key, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(TIMEOUT_S) == 0
    return errors


def consume(servers, topic):
    """All (offset, key, value) from the first offset to the end."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        seen = []
        while (message := consumer.poll(TIMEOUT_S)) is not None and not message.error():
            seen.append((message.offset(), message.key().decode(), message.value() and message.value().decode()))
        assert message is not None, "the end was not reached"
        assert message.error().name() == "_PARTITION_EOF", message.error()
        return seen
    finally:
        consumer.close()


def table(rows):
    values = {}
    for _, key, value in rows:
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values


def checkpoint(data_dir, topic):
    """Up to where the topic's partition 0 was cleaned."""
    file = Path(data_dir) / "cleaner-offset-checkpoint"
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return {line.split()[0]: int(line.split()[2]) for line in lines}.get(topic, 0)


def cleaned(broker, topic, offset):
    """Wait until the topic was cleaned up to `offset` at least."""
    until(
        lambda: checkpoint(broker.data_dir, topic) >= offset,
        lambda: f"{topic} is cleaned up to {offset}, it is up to {checkpoint(broker.data_dir, topic)}",
        TIMEOUT_S,
    )


@pytest.mark.parametrize("codec", mostly_long(["none", "gzip", "snappy", "lz4", "zstd"], "none", "zstd"))
def test_a_consumer_of_the_compacted_topic_sees_the_last_value_of_each_key(compacting, admin_of, codec):
    topic = f"table-{codec}"
    create(admin_of(compacting), topic)
    records = [(f"key-{n % KEYS}", f"value-{n} {'x' * 50}") for n in range(2_000)]
    assert produce(compacting.bootstrap_servers, topic, records, **{"compression.type": codec}) == []
    cleaned(compacting, topic, 1_000)
    seen = consume(compacting.bootstrap_servers, topic)
    assert table(seen) == dict(records)
    assert len(seen) < 1_200
    assert [offset for offset, _, _ in seen] == sorted({offset for offset, _, _ in seen})
    assert all(records[offset] == (key, value) for offset, key, value in seen)


def test_connect_finds_its_policy_and_both_policies_may_be_combined(compacting, admin_of):
    admin = admin_of(compacting)
    create(admin, "connect-offsets", cleanup_policy="compact")
    create(admin, "both", cleanup_policy="compact,delete")
    for topic, policy in (("connect-offsets", "compact"), ("both", "compact,delete")):
        resource = ConfigResource(ResourceType.TOPIC, topic)
        described = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        assert described["cleanup.policy"].value == policy
        assert described["min.cleanable.dirty.ratio"].value == "0.01"
        assert described["max.compaction.lag.ms"].value == str(2**63 - 1)


def test_a_reader_sees_a_deletion_which_is_removed_later(compacting, admin_of):
    create(admin_of(compacting), "deletions", delete_retention_ms="0")
    servers = compacting.bootstrap_servers
    assert produce(servers, "deletions", [("gone", "v"), ("gone", None)]) == []
    for round_ in range(4):
        records = [(f"key-{n % KEYS}", f"value-{round_}-{n} {'x' * 50}") for n in range(400)]
        assert produce(servers, "deletions", records) == []
        cleaned(compacting, "deletions", 400 * round_ + 100)
    seen = consume(servers, "deletions")
    assert not any(key == "gone" for _, key, _ in seen)
    assert len(table(seen)) == KEYS


@pytest.mark.long  # broker_native/storage
def test_a_compacted_log_survives_a_kill_and_becoming_an_ordinary_one(new_broker, admin_of):
    broker = new_broker(log_cleaner_backoff_ms=20)
    create(admin_of(broker), "kept")
    records = [(f"key-{n % KEYS}", f"value-{n} {'x' * 50}") for n in range(2_000)]
    assert produce(broker.bootstrap_servers, "kept", records) == []
    cleaned(broker, "kept", 1_000)
    broker.kill()
    broker = new_broker(log_cleaner_enable=False, log_cleanup_policy="delete")
    admin = admin_of(broker)
    assert table(consume(broker.bootstrap_servers, "kept")) == dict(records)
    change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "kept", incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    for stop in ("kill", "close"):
        getattr(broker, stop)()
        broker = new_broker()
        assert table(consume(broker.bootstrap_servers, "kept")) == dict(records)


@pytest.mark.parametrize("codec", mostly_long(["none", "gzip", "snappy", "lz4", "zstd"], "none", "zstd"))
def test_a_record_without_a_key_is_refused_on_a_compacted_topic_only(shared, admin_of, codec):
    admin = admin_of(shared)
    keyed, plain = f"keyed-{codec}", f"plain-{codec}"
    create(admin, keyed)
    create(admin, plain, cleanup_policy="delete")
    servers, config = shared.bootstrap_servers, {"compression.type": codec}
    records = [("k", "v"), (None, "v" * 100)]
    refused = produce(servers, keyed, records[1:], **config)
    assert [error.name() for error in refused] == ["INVALID_RECORD"]
    assert produce(servers, keyed, records[:1], **config) == []
    assert produce(servers, plain, records, **config) == []
    assert consume(servers, keyed) == [(0, "k", "v")]


def test_a_shorter_back_off_counts_at_once_while_the_broker_runs(new_broker, admin_of):
    broker = new_broker(log_cleaner_backoff_ms=3_600_000)
    admin = admin_of(broker)
    create(admin, "t")
    records = [(f"key-{n % KEYS}", f"value-{n} {'x' * 50}") for n in range(2_000)]
    assert produce(broker.bootstrap_servers, "t", records) == []
    entry = ConfigEntry("log.cleaner.backoff.ms", "20", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    assert checkpoint(broker.data_dir, "t") == 0
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    until(lambda: checkpoint(broker.data_dir, "t") > 0, "the log is compacted")
    assert len(consume(broker.bootstrap_servers, "t")) < len(records)
