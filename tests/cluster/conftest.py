"""Clusters of real brokers for each file that asks, in one ZooKeeper for all files of a process.

What a test does to them is healed before the next one.
"""

from collections.abc import Iterator

import pytest

from pylog_spark.testing import LocalCluster, ZooKeeper
from tests.harness.bench import Bench
from tests.harness.waiting import until
from tests.harness.zookeeper import new_chroot


@pytest.fixture
def zookeeper(worker_zookeeper: ZooKeeper) -> ZooKeeper:
    """The ZooKeeper of this process, healed."""
    worker_zookeeper.heal()
    return worker_zookeeper


@pytest.fixture(scope="module")
def cluster_settings() -> dict[str, object]:
    """What a file gives its `shared_cluster`: a fixture of that name in the file wins."""
    return {}


@pytest.fixture(scope="module")
def shared_cluster(
    tmp_path_factory: pytest.TempPathFactory, worker_zookeeper: ZooKeeper, cluster_settings: dict[str, object]
) -> Iterator[LocalCluster]:
    """Three running brokers, for the tests of one file."""
    place = {"zookeeper": worker_zookeeper, "chroot": new_chroot()}
    with LocalCluster(tmp_path_factory.mktemp("cluster"), **place, **cluster_settings) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    """The file's cluster, healed. Its topics stay: a test makes its own (`new_topic`)."""
    shared_cluster.heal()
    return shared_cluster


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory, worker_zookeeper: ZooKeeper) -> Iterator[Bench]:
    """A cluster that may be harmed, for the tests of one file."""
    with Bench(tmp_path_factory.mktemp("cluster"), worker_zookeeper) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    """The file's cluster, healed."""
    shared_bench.heal()
    back = shared_bench.watcher.registered
    until(lambda: all(back(broker) for broker in shared_bench.ids), "all brokers are back")
    return shared_bench
