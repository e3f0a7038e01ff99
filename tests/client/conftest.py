"""Brokers for the client's tests: pylog's own, and Apache Kafka behind the marker `peers`. One of each per session."""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker

_NUMBERS = itertools.count()


@pytest.fixture(scope="session", params=["pylog", pytest.param("kafka", marks=pytest.mark.peers)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running broker."""
    if request.param == "pylog":
        with LocalBroker(tmp_path_factory.mktemp("pylog")) as broker:
            yield broker.bootstrap_servers
        return
    from tests.peers.kafka import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka"), heap="512m") as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture
def config(bootstrap: str) -> dict[str, str]:
    """Client settings that fail soon."""
    return {"bootstrap.servers": bootstrap, "default.api.timeout.ms": "10000", "delivery.timeout.ms": "20000"}


@pytest.fixture
def new_topic(config: dict[str, str]) -> Callable[..., str]:
    """Creates a topic with a fresh name."""
    from pylog_spark._native import Client

    client = Client(config)

    def create(partitions: int = 1, **configs: str) -> str:
        name = f"client-{os.getpid()}-{next(_NUMBERS)}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        topic: dict[str, Any] = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": named}
        (answer,) = client.create_topics([topic])
        assert answer["error"] is None, answer
        return name

    return create
