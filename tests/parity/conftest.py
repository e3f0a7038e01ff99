"""One Spark session with the connector's jars, one Apache Kafka and one pylog broker for the whole folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker
from tests.parity.compare import Ways
from tests.parity.ways import Way
from tests.peers.jars import jars
from tests.peers.kafka import KafkaBroker
from tests.spark_home import OUT_OF_THE_WAY

#: What both brokers are started with; old records stay (tests give them fixed times), topics are made by hand.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
}
_numbers = count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder that run Spark need the peers."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.peers)


def end_jvm() -> None:
    """Stop the running session, if there is one, and its JVM: jars and settings are those that a JVM was started with."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()
    if (gateway := SparkContext._gateway) is not None:
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        gateway.proc.stdin.close()
        gateway.proc.wait(60)


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """A session that knows both formats, in a JVM of its own."""
    from pylog_spark.testing import spark_session

    end_jvm()
    session = spark_session(
        config={
            "spark.jars": ",".join(map(str, jars("spark"))),
            "spark.sql.streaming.pollingDelay": "20ms",
            "spark.task.maxFailures": "1",
            "spark.sql.shuffle.partitions": "1",
            **OUT_OF_THE_WAY,
        }
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    end_jvm()


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses of Apache Kafka and of pylog. ``PYLOG_PARITY_KAFKA`` names a running Kafka with the same settings instead."""
    ours = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    given = os.environ.get("PYLOG_PARITY_KAFKA")
    with LocalBroker(tmp_path_factory.mktemp("pylog"), **ours) as pylog:
        if given:
            yield {"kafka": given, "pylog": pylog.bootstrap_servers}
            return
        threads = {"num.network.threads": "2", "num.io.threads": "4"}
        with KafkaBroker(tmp_path_factory.mktemp("kafka"), SETTINGS | threads, heap="512m", quick=True) as kafka:
            yield {"kafka": kafka.bootstrap_servers, "pylog": pylog.bootstrap_servers}


@pytest.fixture(scope="package")
def clients(servers: dict[str, str]) -> dict[str, Any]:
    """A client of each broker, for topics."""
    from pylog_spark._native import Client

    return {broker: Client({"bootstrap.servers": address}) for broker, address in servers.items()}


@pytest.fixture(scope="package")
def make_ways(
    spark: Any, servers: dict[str, str], clients: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Ways]:
    """Makes the three ways, with topics and checkpoints of their own."""

    def make() -> Ways:
        number = next(_numbers)
        folder = tmp_path_factory.mktemp("checkpoints")

        def way(label: str, source: str, broker: str, tag: str) -> Way:
            prefix = f"{tag}-{os.getpid()}-{number}-"
            return Way(label, source, servers[broker], spark, clients[broker], prefix, folder / tag)

        return Ways(
            [
                way("Spark's connector on Apache Kafka", "kafka", "kafka", "ck"),
                way("pylog on Apache Kafka", "pylog", "kafka", "pk"),
                way("pylog on pylog", "pylog", "pylog", "pp"),
            ]
        )

    return make


@pytest.fixture
def ways(make_ways: Callable[[], Ways]) -> Ways:
    """The three ways of one test."""
    return make_ways()
