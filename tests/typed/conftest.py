"""Topics to read typed columns from."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker
from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(request: pytest.FixtureRequest, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics; their frames are those of the session of a test that asks for one."""
    spark: Any = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    return topic_maker(spark, servers, new_topic)


@pytest.fixture(scope="module")
def registry_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a schema registry, for the tests of a file: each has topics and subjects of its own."""
    with LocalBroker(tmp_path_factory.mktemp("data"), schema_registry=True) as running:
        yield running


@pytest.fixture
def make_registered(
    request: pytest.FixtureRequest, registry_broker: LocalBroker, new_topic: str
) -> Callable[..., Topic]:
    """Makes topics of that broker."""
    spark: Any = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    return topic_maker(spark, registry_broker.bootstrap_servers, new_topic)


@pytest.fixture
def registered(make_registered: Callable[..., Topic]) -> Topic:
    """A topic of that broker."""
    return make_registered(partitions=2)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A fresh checkpoint location."""
    return str(tmp_path / "checkpoint")
