"""Topics to load, and the rows of a table."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(spark: Any, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics: ``make_topic(partitions=3)``; names begin with that of the test's own."""
    return topic_maker(spark, servers, new_topic)
