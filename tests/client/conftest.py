"""Brokers for the client's tests: pylog's own, and Apache Kafka behind the marker `peers`. One of each per session."""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.harness.brokers import BOTH
from tests.harness.kafka import either, is_served
from tests.harness.waiting import until

_NUMBERS = itertools.count()


@pytest.fixture(scope="session", params=BOTH)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a running broker."""
    with either(request, {"group.initial.rebalance.delay.ms": "0"}) as servers:
        yield servers


@pytest.fixture
def config(bootstrap: str) -> dict[str, str]:
    """Client settings that fail within the time of a test."""
    return {"bootstrap.servers": bootstrap, "default.api.timeout.ms": "30000", "delivery.timeout.ms": "60000"}


@pytest.fixture
def new_topic(config: dict[str, str]) -> Callable[..., str]:
    """Creates a topic with a fresh name."""
    from pylog_spark._native import Client

    client = Client(config)

    def create(partitions: int = 1, **configs: str) -> str:
        name = f"client-{os.getpid()}-{next(_NUMBERS)}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        topic: dict[str, Any] = {"name": name, "num_partitions": partitions, "replication_factor": -1, "configs": named}
        (answer,) = client.create_topics([topic])
        assert answer["error"] is None, answer
        # A record that wants no acknowledgement would be lost.
        until(lambda: is_served(client, name, partitions), f"{name} is served")
        return name

    return create
