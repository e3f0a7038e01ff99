"""Apache Kafka's own transactions tool (kafka-transactions.sh) against our broker."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.brokers import Brokers
from tests.interop.clients import create_topic
from tests.peers.tools import java

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

TOPIC = "transfers"


def tool(servers: str, *arguments: str) -> str:
    """What the tool prints."""
    return java("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", servers, *arguments)


def committed(servers: str) -> list[bytes]:
    """The values that a reader of committed data sees, up to where it may."""
    settings = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        values.append(message.value())
    consumer.close()
    return values


def test_a_transaction_that_nobody_ends_is_described_and_aborted_by_its_start_offset(tmp_path: Path) -> None:
    with Brokers(tmp_path) as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, TOPIC)
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "teller"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(TOPIC, b"never ended", partition=0)
        assert producer.flush(30) == 0
        plain = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        plain.produce(TOPIC, b"behind it", partition=0)
        assert plain.flush(30) == 0
        assert committed(servers) == []

        described = tool(servers, "describe-producers", "--topic", TOPIC, "--partition", "0")
        table = [line.split() for line in described.splitlines() if re.match(r"ProducerId|\d+\s", line)]
        first, sequence = table[0].index("CurrentTransactionStartOffset"), table[0].index("LastSequence")
        assert {row[first]: row[sequence] for row in table[1:]} == {"0": "0", "None": "0"}, described

        tool(servers, "abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "0")
        assert committed(servers) == [b"behind it"]
