"""A user interface of Kafka on pylog: kaskade, in a terminal, shows topics, offsets, groups and their lag. It costs about 2 s."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.peers.packages import packages

# another user interface
pytestmark = [pytest.mark.long, pytest.mark.peers]

_SCREENS = Path(__file__).with_name("kaskade_screens.py")


def test_kaskade_shows_a_topic_its_partitions_and_how_far_its_group_is(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "data") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", b"v", partition=number % 2)
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 1, 2)], asynchronous=False)
        consumer.close()
        done = subprocess.run(
            [sys.executable, _SCREENS, broker.bootstrap_servers, "orders"],
            env={**os.environ, "PYTHONPATH": str(packages("kaskade")), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    screens = json.loads(done.stdout.splitlines()[-1])
    assert {row[0] for row in screens["topics"]} == {"__consumer_offsets", "orders"}
    assert screens["partitions"] == [["0", "1", "0", "5", "5", "[1]", "[1]"], ["1", "1", "0", "5", "5", "[1]", "[1]"]]
    assert screens["group-offsets"] == [["billing", "1", "2", "5", "3"]]
