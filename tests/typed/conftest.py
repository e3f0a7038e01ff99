"""Topics to read typed columns from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(request: pytest.FixtureRequest, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics; their frames are those of the session of a test that asks for one."""
    spark: Any = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    return topic_maker(spark, servers, new_topic)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A fresh checkpoint location."""
    return str(tmp_path / "checkpoint")
