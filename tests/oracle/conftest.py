"""Apache Kafka and pylog side by side: one broker each for all cases, with equal settings."""

import os
from collections.abc import Iterator

import pytest

from pylog_spark.testing import LocalBroker
from tests.oracle.compare import Brokers
from tests.peers.kafka import KafkaBroker

# What both are started with. Kafka's own defaults hold for the rest, on both sides.
SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    # One coordinator: what it knows of a topic for one group it knows for all.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.two.phase.commit.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
KAFKA_ONLY = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    # Targets of KIP-848 groups are made at once and by the coordinator itself, not some time later.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    # Members of both protocols in one group are a gap, see `differences`.
    "group.consumer.migration.policy": "disabled",
    "unstable.api.versions.enable": "true",
}


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both brokers, running. ``PYLOG_ORACLE_KAFKA`` names a running Apache Kafka with the same settings instead; with
    ``PYLOG_ORACLE_ALONE`` it is asked alone, to see whether cases say what it does."""
    ours = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    given = os.environ.get("PYLOG_ORACLE_KAFKA")
    if given and os.environ.get("PYLOG_ORACLE_ALONE"):
        yield Brokers(given, None).warmed_up()
        return
    with LocalBroker(tmp_path_factory.mktemp("pylog"), **ours) as pylog:
        if given:
            yield Brokers(given, pylog.bootstrap_servers).warmed_up()
            return
        with KafkaBroker(tmp_path_factory.mktemp("kafka"), SETTINGS | KAFKA_ONLY, heap="512m", quick=True) as kafka:
            yield Brokers(kafka.bootstrap_servers, pylog.bootstrap_servers).warmed_up()
