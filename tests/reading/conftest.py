"""Brokers of both kinds, and topics without a Spark session: readers run in the test's own process."""

from collections.abc import Callable, Iterator

import pytest

from tests.harness.kafka import either
from tests.reading import streams
from tests.spark.support import Topic, topic_maker


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a running broker: pylog's, or both kinds, for files that ask for them (`tests.reading.support.EITHER`)."""
    if hasattr(request, "param"):
        with either(request) as servers:
            yield servers
    else:
        yield request.getfixturevalue("servers")


@pytest.fixture
def make_topic(bootstrap: str, new_topic: str) -> Callable[..., Topic]:
    """Makes topics: ``make_topic(partitions=3)``; names begin with that of the test's own."""
    return topic_maker(None, bootstrap, new_topic)


@pytest.fixture(autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads small micro-batches: the driver, as Spark has it by default, or the tasks (`tests.reading.streams.BOTH_WAYS`)."""
    if getattr(request, "param", "driver") == "tasks":
        monkeypatch.setitem(streams.of_every_query, "prefetchMaxBytes", "0")
