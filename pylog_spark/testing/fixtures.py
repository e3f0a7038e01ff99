"""Pytest fixtures for users: ``pytest_plugins = ["pylog_spark.testing.fixtures"]``."""

from collections.abc import Iterator

import pytest

from pylog_spark.testing.local_broker import LocalBroker
from pylog_spark.testing.local_cluster import LocalCluster


@pytest.fixture(scope="session")
def pylog_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A running broker with an empty directory, one for the whole test session."""
    with LocalBroker(tmp_path_factory.mktemp("pylog")) as broker:
        yield broker


@pytest.fixture(scope="session")
def pylog_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three running brokers and their ZooKeeper, empty, one cluster for the whole test session."""
    with LocalCluster(tmp_path_factory.mktemp("pylog-cluster")) as cluster:
        yield cluster
