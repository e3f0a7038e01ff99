"""The three ways of a test, and the brokers they need, each started when the first test needs it.

pylog's broker belongs to this folder. Apache Kafka runs only for ways that ask the connector (`compare.Mode`): the canaries', and
all with ``PYLOG_PARITY`` set to ``live`` or ``record``. ``PYLOG_PARITY_KAFKA`` names a running Kafka with the same settings instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.testing import LocalBroker
from tests.parity.compare import COLLECTED, Mode, Ways
from tests.parity.recorded import Recording
from tests.parity.ways import Way

#: What this folder's broker is started with, as `spark_kafka` is; old records stay (tests give them fixed times), topics are made by hand.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
}
MODE = Mode.of_environment()
#: Way -> what messages call it, the format, the broker's fixture, how its topics begin.
WAYS = {
    "connector": ("Spark's connector on Apache Kafka", "kafka", "spark_kafka", "ck"),
    "pylog on Apache Kafka": ("pylog on Apache Kafka", "pylog", "spark_kafka", "pk"),
    "pylog": ("pylog on pylog", "pylog", "parity_pylog", "pp"),
}
_HERE = Path(__file__).parent
_PASSED = pytest.StashKey[bool]()
_numbers = count()


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers", "canary: runs the three ways of tests/parity in every run, and checks the recorded answers"
    )


def is_live(item: pytest.Item) -> bool:
    """Whether a test asks the connector itself."""
    return MODE is not Mode.RECORDED or item.get_closest_marker("canary") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of this folder that ask the connector need the peers; and `test_ledger` is to know all tests."""
    collected = config.stash.setdefault(COLLECTED, {})
    for item in items:
        collected.setdefault(item.path, set()).add(item.name)
        if _HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()) and is_live(item):
            item.add_marker(pytest.mark.peers)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note for `ways` whether the test itself has passed."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(scope="package")
def parity_pylog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of this folder's broker."""
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with LocalBroker(tmp_path_factory.mktemp("pylog"), **settings) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="package")
def address_and_client(request: pytest.FixtureRequest) -> Callable[[str], tuple[str, Any]]:
    """Gives the address of a broker by the name of its fixture, and a client for its topics; starts it when it does not run."""
    from pylog_spark._native import Client

    clients: dict[str, Any] = {}

    def look_up(broker: str) -> tuple[str, Any]:
        address = request.getfixturevalue(broker)
        if broker not in clients:
            clients[broker] = Client({"bootstrap.servers": address})
        return address, clients[broker]

    return look_up


class MadeWhenNeeded(dict[str, Way]):
    """The ways of one test, or of several that share their topics; each is made, and filled, when it is first looked up."""

    def __init__(self, make: Callable[[str], Way], fill: Callable[[Way], None] | None = None) -> None:
        super().__init__()
        self._make = make
        self._fill = fill

    def __missing__(self, name: str) -> Way:
        way = self._make(name)
        if self._fill is not None:
            self._fill(way)
        self[name] = way
        return way


@pytest.fixture(scope="module")
def make_ways(
    spark: Any, address_and_client: Callable[[str], tuple[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., MadeWhenNeeded]:
    """Makes ways with topics and checkpoints of their own; takes what fills each of them."""

    def make(fill: Callable[[Way], None] | None = None) -> MadeWhenNeeded:
        number = next(_numbers)
        folder = tmp_path_factory.mktemp("checkpoints")

        def way(name: str) -> Way:
            label, source, broker, tag = WAYS[name]
            address, client = address_and_client(broker)
            return Way(label, source, address, spark, client, f"{tag}-{os.getpid()}-{number}-", folder / tag)

        return MadeWhenNeeded(way, fill)

    return make


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Iterator[Callable[[MadeWhenNeeded], Ways]]:
    """Makes the comparison of one test over ways that it may share with others."""
    made: list[Ways] = []
    recording = Recording.of(request.path)
    mode = Mode.LIVE if MODE is Mode.RECORDED and is_live(request.node) else MODE

    def over(ways: MadeWhenNeeded) -> Ways:
        made.append(Ways(ways, request.node.name, recording, mode))
        return made[-1]

    yield over
    if request.node.stash.get(_PASSED, False):
        for ways in made:
            ways.finish()


@pytest.fixture
def ways(make_ways: Callable[..., MadeWhenNeeded], compare: Callable[[MadeWhenNeeded], Ways]) -> Ways:
    """The ways of one test."""
    return compare(make_ways())
