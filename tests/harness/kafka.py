"""Apache Kafka for the tests of a process: started by the first test that asks for it, stopped at the end, shared by all.

Two of them, because two settings cannot be both ways at once and neither can change while it runs:

| fixture | topics are made by who names them | two-phase commit | who asks it |
|---|---|---|---|
| `kafka` | yes | on | tests/oracle, tests/client, tests/reading, tests/docs, share groups in tests/interop |
| `spark_kafka` | no | off, as by default | tests/parity, the sink's tests in tests/spark |

Only a test that is about a Kafka's end or start has one of its own. Names of topics, groups and transactions must be a test's own.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: What both have beside Kafka's defaults: nothing waits that need not, and few partitions of internal topics to load.
_COMMON = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
    "num.network.threads": "2",
    "num.io.threads": "4",
}
#: Settings of `kafka` that pylog knows as well: tests/oracle gives them to both.
SHARED_SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    # One coordinator: what it knows of a topic for one group it knows for all.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
KAFKA_SETTINGS = {
    **_COMMON,
    **SHARED_SETTINGS,
    # Targets of KIP-848 groups and of share groups are made at once and by the coordinator itself, not some time later.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "group.share.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Members of both protocols in one group are a gap, see tests/oracle/differences.py.
    "group.consumer.migration.policy": "disabled",
    "unstable.api.versions.enable": "true",
}
SPARK_KAFKA_SETTINGS = {
    **_COMMON,
    "auto.create.topics.enable": "false",
    # Tests give records fixed times.
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "50",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


@contextmanager
def _running(variable: str, folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    given = os.environ.get(variable)
    if given:
        yield given
        return
    # Imported when needed: it looks for Java.
    from tests.peers.kafka import KafkaBroker

    with KafkaBroker(folder, settings, heap="512m", quick=True) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of Apache Kafka. ``PYLOG_ORACLE_KAFKA`` names a running one with the same settings instead."""
    with _running("PYLOG_ORACLE_KAFKA", tmp_path_factory.mktemp("kafka"), KAFKA_SETTINGS) as servers:
        yield servers


@pytest.fixture(scope="session")
def spark_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of Apache Kafka. ``PYLOG_PARITY_KAFKA`` names a running one with the same settings instead."""
    with _running("PYLOG_PARITY_KAFKA", tmp_path_factory.mktemp("spark-kafka"), SPARK_KAFKA_SETTINGS) as servers:
        yield servers


def is_served(client: Any, topic: str, partitions: int) -> bool:
    """Whether the leaders of a topic that was just made serve it: Apache Kafka may know it only a little after it has answered."""
    from pylog_spark._native import NativeError

    try:
        client.list_offsets([(topic, partition, -1) for partition in range(partitions)])
    except NativeError as error:
        if error.args[0] != "UNKNOWN_TOPIC_OR_PARTITION":
            raise
        return False
    return True


@contextmanager
def either(
    request: pytest.FixtureRequest, settings: Mapping[str, str] | None = None, kafka: str = "kafka", **ours: str
) -> Iterator[str]:
    """What a fixture with ``params=BOTH`` gives: the address of a broker of pylog, or of the shared Apache Kafka.

    Parameters
    ----------
    request : FixtureRequest
        Of the fixture, whose parameter says which.
    settings : mapping
        Of pylog's broker, under Kafka's names; Apache Kafka's must have them already.
    kafka : str
        The name of Apache Kafka's fixture.
    **ours : str
        Further ones of pylog's, with underscores.
    """
    if request.param == "kafka":
        yield request.getfixturevalue(kafka)
        return
    from tests.harness.brokers import pylog

    folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    named = {name.replace(".", "_"): text for name, text in (settings or {}).items()}
    with pylog(folders.mktemp("pylog"), **named, **ours) as servers:
        yield servers
