"""A source, which is a pylog or an Apache Kafka, and a pylog as its target; shared by the tests of a file."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.mirror.support import MirrorProcess, ServedAdmin

_NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=BOTH)
def source(request: pytest.FixtureRequest) -> Iterator[str]:
    """Servers of the cluster that is copied."""
    with either(request) as servers:
        yield servers


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """The broker that gets the copies."""
    with LocalBroker(tmp_path_factory.mktemp("target"), group_initial_rebalance_delay_ms=0) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A name for a topic of the test's own."""
    return f"mirrored-{next(_NUMBERS)}"


@pytest.fixture
def admin(source: str) -> Iterator[Admin]:
    """Of the source."""
    with ServedAdmin(source) as opened:
        yield opened


@pytest.fixture
def copies(target: LocalBroker) -> Iterator[Admin]:
    """Of the target."""
    with Admin(target.bootstrap_servers) as opened:
        yield opened


@pytest.fixture
def mirror(source: str, target: LocalBroker) -> Iterator[Callable[..., MirrorProcess]]:
    """Start mirrors: `mirror("--topics", "orders")`; all are killed at the end."""
    running = []

    def start(*words: str) -> MirrorProcess:
        process = MirrorProcess(source, target.bootstrap_servers, *words)
        running.append(process)
        return process.start()

    yield start
    for process in running:
        process.__exit__(None, None, None)
