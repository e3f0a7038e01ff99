"""What a release leaves to the next: a data directory with everything that a broker keeps, a checkpoint, archives; and how it is looked at.

``python -m tests.upgrade.write`` writes ``tests/upgrade/data/VERSION`` with this build, once for each release, shortly before it. What it
has then is never written again: `test_upgrade` opens it with every later build.

A VERSION has ``killed.tar.zst``, what a broker had when it was killed, ``stopped.tar.zst``, what it had after a clean stop, and
``seen.json``, what its clients saw. Its members: ``data``, the directory; ``checkpoint`` of the query of `copy`; ``topic.pylog.zst`` and
``history``, the two kinds of archives. Clients are confluent-kafka and the commands, which do not read files of brokers.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from confluent_kafka.schema_registry import SchemaRegistryClient

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import turns

DATA = Path(__file__).with_name("data")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PASSWORD = "of the release before"
GROUP, COMPACTED, IN_TRANSACTIONS, COPIES, TRANSACTIONAL_ID = "readers", "compacted", "transactions", "copies", "writer"
PARTITIONS = 2
RECORDS = 40
_TIMEOUT_S = 30.0
_FIRST_MS = 1_700_000_000_000


def broker(data: Path, **settings: object) -> LocalBroker:
    """A broker on that directory: with ACLs, a listener called LOGIN for users, and a registry. Who comes by the other listener may do all."""
    secured = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
        "sasl_enabled_mechanisms": "SCRAM-SHA-512",
        "inter_broker_listener_name": "PLAIN",
        "log_cleaner_backoff_ms": 50,
        "group_initial_rebalance_delay_ms": 0,
        "offsets_topic_num_partitions": 2,
        "transaction_state_log_num_partitions": 2,
        # What is left lies for years before it is opened.
        "offsets_retention_minutes": 2**31 - 1,
    }
    listeners = {"PLAIN": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"}
    return LocalBroker(
        data, listeners=listeners, schema_registry=("--schema-registry-without-login",), **{**secured, **settings}
    )


def command(servers: str, *words: str, given: str = "") -> str:
    """What a command of pylog prints. Raises `AssertionError` with what it says when it fails."""
    line = [sys.executable, "-m", "pylog_spark", *words, "--bootstrap-server", servers]
    done = subprocess.run(line, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@contextmanager
def producer(servers: str, **settings: object) -> Iterator[Producer]:
    """A producer that has handed everything over at the end."""
    found = Producer({"bootstrap.servers": servers, "log_level": 0, **settings})
    yield found
    assert found.flush(_TIMEOUT_S) == 0


def put(to: Producer, topic: str, numbers: Sequence[int]) -> None:
    """Records with the same keys, times and headers wherever they are written; each seventh has no value."""
    for number in numbers:
        value = None if number % 7 == 3 else f"{topic} {number} ".encode() * 20
        headers = [("number", str(number).encode()), ("none", None)]
        to.produce(
            topic,
            value,
            f"key-{number % 10}".encode(),
            number % PARTITIONS,
            timestamp=_FIRST_MS + number,
            headers=headers,
        )


def records(servers: str, topic: str, **settings: object) -> list[list[Any]]:
    """`records_of` one topic."""
    return records_of(servers, [topic], **settings)[topic]


def records_of(servers: str, topics: Sequence[str], **settings: object) -> dict[str, list[list[Any]]]:
    """By topic all committed records: partition, offset, time in ms, key, value and headers, in the order of partitions and offsets."""
    own = {"group.id": "nobody", "enable.auto.commit": False, "enable.partition.eof": True, "log_level": 0}
    found: dict[str, list[list[Any]]] = {topic: [] for topic in topics}
    with closing(
        Consumer({"bootstrap.servers": servers, "isolation.level": "read_committed", **own, **settings})
    ) as consumer:
        partitions = {topic: consumer.list_topics(topic, _TIMEOUT_S).topics[topic].partitions for topic in topics}
        ahead = {(topic, partition) for topic in topics for partition in partitions[topic]}
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ahead])
        for _ in turns(lambda: not ahead, lambda: f"the end of {ahead}", _TIMEOUT_S):
            if (message := consumer.poll(0.2)) is None:
                continue
            if (error := message.error()) is not None:
                assert error.name() == "_PARTITION_EOF", error
                ahead.discard((message.topic(), message.partition()))
                continue
            headers = [[name, value and value.decode()] for name, value in message.headers() or []]
            texts = [each and each.decode() for each in (message.key(), message.value())]
            row = [message.partition(), message.offset(), message.timestamp()[1], *texts, headers]
            found[message.topic()].append(row)
    return {topic: sorted(rows, key=lambda row: row[:2]) for topic, rows in found.items()}


def table(rows: list[list[Any]]) -> dict[str, str]:
    """What is left of a compacted topic however far it has been cleaned: the last value of each key."""
    found = {row[3]: row[4] for row in rows}
    return {key: value for key, value in found.items() if value is not None}


def seen(running: LocalBroker) -> dict[str, Any]:
    """All that clients see of a broker, as values of JSON."""
    servers = running.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    topics = sorted(name for name in admin.list_topics(timeout=_TIMEOUT_S).topics if not name.startswith("_"))
    configs = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics])
    groups = admin.list_consumer_groups().result(_TIMEOUT_S).valid
    with closing(SchemaRegistryClient({"url": running.schema_registry_url})) as registry:
        schemas = {
            subject: [
                [registry.get_version(subject, version).schema_id, version]
                for version in registry.get_versions(subject)
            ]
            for subject in registry.get_subjects()
        }
        texts = {
            str(number): registry.get_schema(number).schema_str for found in schemas.values() for number, _ in found
        }
    rows = records_of(servers, topics)
    compacted = rows.pop(COMPACTED)
    return {
        "records": rows,
        "table": table(compacted),
        "settings": {
            resource.name: {name: entry.value for name, entry in sorted(found.result(_TIMEOUT_S).items()) if entry.source == 1}
            for resource, found in configs.items()
        },
        "groups": {group.group_id: offsets(admin, group.group_id) for group in groups},
        "acls": json.loads(command(servers, "acl", "list", "--json")),
        "users": json.loads(command(servers, "user", "list", "--json")),
        "quotas": json.loads(command(servers, "quota", "list", "--json")),
        "schemas": schemas,
        "texts": texts,
        "sink": [[line["key"], line["version"], line["state"]] for line in json.loads(command(servers, "sink", "list", "--json"))],
    }  # fmt: skip


def offsets(admin: AdminClient, group: str) -> list[list[Any]]:
    """What a group has committed: topic, partition, offset and metadata."""
    (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    found = asked.result(_TIMEOUT_S).topic_partitions
    return sorted([each.topic, each.partition, each.offset, each.metadata] for each in found)


def copy(spark: Any, servers: str, checkpoint: str) -> None:
    """Run the query that copies a topic exactly once, until it has all that is there."""
    options = {"kafka.bootstrap.servers": servers}
    stream = spark.readStream.format("pylog").options(**options, subscribe="zstd", startingOffsets="earliest").load()
    rows = stream.select("key", "value")
    query = rows.writeStream.format("pylog").options(**options, topic=COPIES, checkpointLocation=checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
