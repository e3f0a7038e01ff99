"""Topics, offsets, configs: answers have the shape that `_native.pyi` promises."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from pylog_spark._native import Client
from tests.client.support import values_batch, write
from tests.harness.brokers import REPLICAS
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster


def test_a_topic_is_described_with_its_partitions(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(3)
    (described,) = Client(config).describe_topics([topic])
    assert (described["name"], described["is_internal"], described["error"]) == (topic, False, None)
    assert len(described["topic_id"]) == 22
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    brokers = sorted(broker["node_id"] for broker in Client(config).describe_cluster()["brokers"])
    assert len(brokers) == REPLICAS
    for partition in described["partitions"]:
        assert sorted(partition["replicas"]) == sorted(partition["isr"]) == brokers
        assert partition["leader"] in brokers
    assert topic in [topic_row["name"] for topic_row in Client(config).describe_topics(None)]


def test_listed_partitions_are_those_that_are_described(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    client, topic = Client(config), new_topic(3)
    (described,) = client.describe_topics([topic])
    assert client.list_partitions([topic]) == [(topic, described["topic_id"], False, None, [0, 1, 2])]
    # Tests beside this one make topics between two requests for all.
    assert (topic, described["topic_id"], False, None, [0, 1, 2]) in client.list_partitions(None)
    assert client.list_partitions(["no-such-topic"]) == [("no-such-topic", "", False, "UNKNOWN_TOPIC_OR_PARTITION", [])]


def test_creating_a_topic_twice_is_an_error_of_that_topic(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    (answer,) = Client(config).create_topics([{"name": topic}])
    assert answer["error"] == "TOPIC_ALREADY_EXISTS"
    assert answer["message"]


def test_validating_creates_nothing(config: dict[str, str]) -> None:
    client = Client(config)
    (answer,) = client.create_topics([{"name": "only-validated", "num_partitions": 2}], validate_only=True)
    assert answer["error"] is None
    (described,) = client.describe_topics(["only-validated"])
    assert described["error"] == "UNKNOWN_TOPIC_OR_PARTITION"


def test_deleted_topics_are_gone(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    client, topic = Client(config), new_topic()
    assert [result["error"] for result in client.delete_topics([topic])] == [None]
    assert [result["error"] for result in client.delete_topics([topic])] == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_partitions_can_be_added_but_not_removed(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    client, topic = Client(config), new_topic(2)
    assert [result["error"] for result in client.create_partitions({topic: 4})] == [None]
    # Apache Kafka's brokers hear of it a moment later.
    until(lambda: len(client.describe_topics([topic])[0]["partitions"]) == 4, "the new partitions are known")
    assert [result["error"] for result in client.create_partitions({topic: 3})] == ["INVALID_PARTITIONS"]


def test_offsets_are_found_by_position_and_by_time(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic(2)
    stamps = pa.array([1000, 2000, 3000], pa.timestamp("ms"))
    write(config, topic, values_batch([b"a", b"b", b"c"], timestamp=stamps, partition=pa.array([1, 1, 1])))
    wanted = [(topic, 1, -1), (topic, 1, -2), (topic, 0, -1), (topic, 1, 1500), (topic, 1, 3001), (topic, 1, -3)]
    found = Client(config).list_offsets(wanted)
    assert [(name, partition) for name, partition, _, _ in found] == [(name, number) for name, number, _ in wanted]
    assert [offset for _, _, offset, _ in found] == [3, 0, 0, 1, -1, 2]
    assert [found[at][3] for at in (3, 5)] == [2000, 3000]


def test_configs_are_set_shown_and_reset(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    client, topic = Client(config), new_topic(retention_ms="1234567")

    def retention() -> tuple[str, str]:
        (described,) = client.describe_configs("topic", [topic])
        (config,) = [config for config in described["configs"] if config["name"] == "retention.ms"]
        return config["value"], config["source"]

    # Apache Kafka acknowledges a change before every part of it shows it.
    until(lambda: retention() == ("1234567", "DYNAMIC_TOPIC_CONFIG"), "the value is known")
    assert [result["error"] for result in client.alter_configs("topic", topic, {"retention.ms": "99"})] == [None]
    until(lambda: retention() == ("99", "DYNAMIC_TOPIC_CONFIG"), "the change is known")
    assert [result["error"] for result in client.alter_configs("topic", topic, {"retention.ms": None})] == [None]
    until(lambda: retention()[1] != "DYNAMIC_TOPIC_CONFIG", "the default is known")
    (wrong,) = client.alter_configs("topic", topic, {"no.such.setting": "1"})
    assert wrong["error"] in ("INVALID_CONFIG", "INVALID_REQUEST")
