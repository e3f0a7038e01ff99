"""Topics of a test's own, and the audit topic that belongs to them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.client import Admin
from tests.audit.support import Audited
from tests.spark.support import Topic, topic_maker


@pytest.fixture
def make_topic(spark: Any, servers: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics for Spark: ``make_topic(partitions=3)``; names begin with that of the test's own."""
    return topic_maker(spark, servers, new_topic)


@pytest.fixture
def audited(servers: str, new_topic: str) -> Audited:
    """A topic of three partitions and an audit topic of two."""
    found = Audited(servers, f"{new_topic}-data", f"{new_topic}-audit")
    with Admin(servers) as admin:
        admin.create_topic(found.topic, 3, config={"max.message.bytes": "20000"})
        admin.create_topic(found.audit, 2)
    return found


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A fresh checkpoint location."""
    return str(tmp_path / "checkpoint")
