"""One ZooKeeper for each process of a test run; every cluster has a place of its own in it."""

from collections.abc import Iterator
from itertools import count

import pytest

from pylog_spark.testing import ZooKeeper

_numbers = count()


@pytest.fixture(scope="session")
def worker_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A running ZooKeeper. A test that harms it must heal it: later files need it, too."""
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def new_chroot() -> str:
    """A place in it that no other cluster has."""
    return f"/t-{next(_numbers)}"
