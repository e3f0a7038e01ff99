"""Topics to load, and the rows of a table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(spark: Any, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics: ``make_topic(partitions=3)``; names begin with that of the test's own."""
    return topic_maker(spark, servers, new_topic)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Where a table is to be."""
    return str(tmp_path / "table")
