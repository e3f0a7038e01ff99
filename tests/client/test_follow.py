"""`follow`: batches of a topic as they come, and where they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark.client import Admin, LogError, follow
from pylog_spark.testing import LocalBroker
from tests.client.support import values_batch, write
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster


def put(config: dict[str, str], topic: str, partition: int, *values: bytes) -> None:
    write(config, topic, values_batch(values, partition=pa.array([partition] * len(values), pa.int32())))


def test_what_is_there_comes_first_and_then_what_is_written(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic(3)
    for partition in (0, 1, 2):
        put(config, topic, partition, b"%d-0" % partition, b"%d-1" % partition)
    found: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    with follow(config["bootstrap.servers"], topic, start="earliest", config=config) as batches:
        assert batches.schema.names[:2] == ["key", "value"]
        for batch in batches:
            (partition,) = set(batch["partition"].to_pylist())
            found[partition] += batch["value"].to_pylist()
            have = [len(values) for values in found.values()]
            if have == [2, 2, 2]:
                put(config, topic, 1, b"1-2", b"1-3")
            if sum(have) == 8:
                break
        assert batches.offsets == {0: 2, 1: 4, 2: 2}
    assert found == {number: [b"%d-%d" % (number, at) for at in range(4 if number == 1 else 2)] for number in found}


def test_iteration_ends_when_nothing_came_for_the_time_and_may_go_on(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    topic = new_topic(2)
    put(config, topic, 0, b"before")
    with follow(config["bootstrap.servers"], topic, timeout_s=0.3, columns=["value"], config=config) as batches:
        assert list(batches) == []
        put(config, topic, 1, b"a", b"b")
        assert iterated(batches, 2) == [b"a", b"b"]
        begin = batches.offsets
    put(config, topic, 0, b"c")
    with follow(config["bootstrap.servers"], topic, start=begin, timeout_s=0.3, config=config) as batches:
        assert iterated(batches, 1) == [b"c"]


def iterated(batches: Any, count: int) -> list[bytes]:
    """What iterations give until that many values came: on a busy machine the first may end before the broker has answered."""
    found: list[bytes] = []

    def all_came() -> bool:
        found.extend(value for batch in batches for value in batch["value"].to_pylist())
        return len(found) >= count

    until(all_came, lambda: f"{count} values come: {found}")
    return found


@pytest.mark.parametrize("partitions", [1, 3])
def test_closing_ends_an_iteration_that_waits_in_another_thread(
    config: dict[str, str], new_topic: Callable[..., str], partitions: int
) -> None:
    batches = follow(config["bootstrap.servers"], new_topic(partitions), config=config)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(batches))
    waiting.start()
    batches.close()
    waiting.join(30)
    assert not waiting.is_alive()
    assert found == []
    assert batches.poll(60) is None


def test_a_topic_that_is_deleted_is_an_error(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    with follow(config["bootstrap.servers"], topic, config=config) as batches:
        assert batches.poll(0) is None
        with Admin(config["bootstrap.servers"]) as admin:
            admin.delete_topics([topic])
        with pytest.raises(LogError, match=topic) as gone:
            until(lambda: batches.poll(0.1), "the topic is missed")
    assert gone.value.kind in ("UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION")


def test_values_are_decoded_as_they_come_also_with_schemas_that_are_new(tmp_path: Any) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    fields = [{"name": "id", "type": "long"}, {"name": "to", "type": "string"}]
    with LocalBroker(tmp_path, schema_registry=True, num_partitions=1) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("flights", 1)
        with (
            closing(SchemaRegistryClient({"url": broker.schema_registry_url})) as client,
            follow(
                broker.bootstrap_servers,
                "flights",
                value_format="avro",
                schema="id long, `to` string, offset long",
                registry=broker.schema_registry_url,
                timeout_s=60,
            ) as batches,
        ):
            client.set_compatibility("flights-value", "NONE")
            for number, known in enumerate((fields[:1], fields)):
                serialize = AvroSerializer(client, json.dumps({"type": "record", "name": "F", "fields": known}))
                context = SerializationContext("flights", MessageField.VALUE)
                values = [serialize({"id": at, "to": "BER"}, context) for at in (2 * number, 2 * number + 1)]
                put(config, "flights", 0, *[value for value in values if value is not None])
                rows = next(batches).to_pylist()
                to = "BER" if number else None
                assert rows == [{"id": at, "to": to, "offset": at} for at in (2 * number, 2 * number + 1)]


def test_no_partition_is_refused(config: dict[str, str], new_topic: Callable[..., str]) -> None:
    with pytest.raises(LogError, match="No partition is asked for"):
        follow(config["bootstrap.servers"], new_topic(), partitions=[], config=config)
