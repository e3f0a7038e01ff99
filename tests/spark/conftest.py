"""One Spark session for all Spark tests of a run, and topics to read and write."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Topic, topic_maker


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with two cores and small pauses between triggers."""
    from pylog_spark.testing import spark_session

    session = spark_session(config={"spark.sql.streaming.pollingDelay": "20ms", "spark.task.maxFailures": "1"})
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def topic(spark: Any, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics: ``topic(partitions=3)``; names begin with that of the test's own."""
    return topic_maker(spark, servers, new_topic)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A fresh checkpoint location."""
    return str(tmp_path / "checkpoint")
