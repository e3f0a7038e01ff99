"""Pylog's plugin of pytest: fixtures that are there wherever pylog is installed, without an import (``pytest --fixtures`` lists them).

Pytest finds it by the entry point ``pytest11``; ``-p no:pylog`` leaves it out. What a fixture needs is imported when a test asks for it.
With pytest-xdist each worker has brokers of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pylog_spark.testing.local_broker import LocalBroker
    from pylog_spark.testing.local_cluster import LocalCluster

#: The name of a topic has at most 249 characters.
_NAME_CHARACTERS = 200
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def pylog_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A running broker with an empty directory, one for the whole test session."""
    from pylog_spark.testing.local_broker import LocalBroker

    with LocalBroker(tmp_path_factory.mktemp("pylog")) as broker:
        yield broker


@pytest.fixture
def pylog_topic(pylog_broker: LocalBroker, request: pytest.FixtureRequest) -> str:
    """The name of a new topic in `pylog_broker`, for this test alone.

    It has one partition and the broker's settings. An indirect parameter says otherwise, by the arguments of `Admin.create_topic`:
    ``@pytest.mark.parametrize("pylog_topic", [{"partitions": 3}], indirect=True)``.
    """
    from pylog_spark.client.admin import Admin

    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:_NAME_CHARACTERS]
    name = f"{test}-{next(_numbers)}"
    with Admin(pylog_broker.bootstrap_servers) as admin:
        admin.create_topic(name, **{"partitions": 1, **getattr(request, "param", {})})
    return name


@pytest.fixture(scope="session")
def pylog_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three running brokers and their ZooKeeper, empty, one cluster for the whole test session. It needs Java."""
    from pylog_spark.testing.local_cluster import LocalCluster

    with LocalCluster(tmp_path_factory.mktemp("pylog-cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def pylog_spark_session() -> Iterator[SparkSession]:
    """A Spark session of this machine in which ``format("pylog")`` works: the running one, or a new one that ends with the test session."""
    from pyspark.sql import SparkSession

    from pylog_spark.testing.spark import spark_session

    running = SparkSession.getActiveSession()
    session = spark_session()
    yield session
    if running is None:
        session.stop()
