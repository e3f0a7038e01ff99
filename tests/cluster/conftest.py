"""Clusters of real brokers and a real ZooKeeper, for each test or for each file that asks."""

from collections.abc import Iterator

import pytest

from pylog_spark.testing import LocalCluster, ZooKeeper
from tests.cluster.bench import Bench, until


@pytest.fixture
def cluster(tmp_path):
    """Three running brokers."""
    with LocalCluster(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory):
    """A running ZooKeeper, for the tests of one file."""
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A cluster that may be harmed, for the tests of one file."""
    with Bench(tmp_path_factory.mktemp("cluster")) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: Bench) -> Iterator[Bench]:
    """The file's cluster, healed after the test."""
    yield shared_bench
    shared_bench.heal()
    back = shared_bench.watcher.registered
    until(lambda: all(back(broker) for broker in shared_bench.ids), "all brokers are back")
