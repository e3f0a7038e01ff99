"""Apache Kafka's own test of transactions, `TransactionalMessageCopier`: consume, produce and commit offsets in transactions,
some of them aborted at random, while the broker is killed and comes back."""

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client.admin import LATEST, Admin
from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.interop.clients import create_topic, until_transactions_end
from tests.peers.tools import java_command

# tests/crash/test_transactions.py
pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.cluster]

INPUT, OUTPUT, GROUP = "input", "output", "copiers"
PARTITIONS = 2
RECORDS = 3_000
DEADLINE_S = 120


def fill(servers: str) -> None:
    """Numbers, in each partition of the input."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(INPUT, f"{partition}-{number:05}", partition=partition)
    assert producer.flush(30) == 0


def copier(servers: str, partition: int) -> list[str]:
    """The words that run one over a partition."""
    words = {
        "--broker-list": servers,
        "--input-topic": INPUT,
        "--input-partition": partition,
        "--output-topic": OUTPUT,
        "--transactional-id": f"copier-{partition}",
        "--consumer-group": f"{GROUP}-{partition}",
        "--transaction-size": 50,
        "--transaction-timeout": 10_000,
    }
    given = [str(word) for pair in words.items() for word in pair]
    command = java_command("org.apache.kafka.tools.TransactionalMessageCopier")
    return [*command, *given, "--enable-random-aborts", "--use-group-metadata"]


def wait_for_output(admin: Admin, records: int) -> None:
    """Wait until the output's first partition holds some."""

    def end() -> int:
        ((_, _, offset, _),) = admin._client.list_offsets([(OUTPUT, 0, LATEST)], "read_uncommitted")
        return offset

    until(lambda: end() >= records, lambda: f"{end()} become {records} records", DEADLINE_S)


def committed(servers: str, partition: int) -> list[str]:
    """What a reader of committed data sees of the output."""
    settings = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(OUTPUT, partition, 0)])
    values = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        values.append(message.value().decode())
    consumer.close()
    return values


def test_copiers_copy_each_record_once_and_in_order_though_they_abort_and_the_broker_is_killed(tmp_path: Path) -> None:
    with Brokers(tmp_path / "data") as broker, ExitStack() as running:
        servers = broker.bootstrap_servers
        for topic in (INPUT, OUTPUT):
            create_topic(servers, topic, PARTITIONS)
        fill(servers)
        admin = running.enter_context(Admin(servers))
        copiers = []
        for partition in range(PARTITIONS):
            log = running.enter_context(open(tmp_path / f"copier-{partition}.log", "w+"))
            words = copier(servers, partition)
            process = running.enter_context(subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT))
            running.callback(process.kill)
            copiers.append(process)
        for records in (RECORDS // 4, RECORDS // 2):
            wait_for_output(admin, records)
            broker.kill()
            broker.start()
        for partition, process in enumerate(copiers):
            assert process.wait(DEADLINE_S) == 0, (tmp_path / f"copier-{partition}.log").read_text()[-3000:]
        until_transactions_end(servers)
        for partition in range(PARTITIONS):
            assert committed(servers, partition) == [f"{partition}-{number:05}" for number in range(RECORDS)]
