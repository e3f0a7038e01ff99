"""A broker with a schema registry, and Confluent's client of it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from pylog_spark.testing import LocalBroker

_numbers = count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker with a registry, for the tests of a file: each has subjects of its own."""
    with LocalBroker(tmp_path_factory.mktemp("data"), schema_registry=True) as running:
        yield running


@pytest.fixture
def client(broker: LocalBroker) -> Iterator[SchemaRegistryClient]:
    """Confluent's client, which keeps in mind nothing of another test's."""
    with closing(SchemaRegistryClient({"url": broker.schema_registry_url})) as made:
        yield made


@pytest.fixture
def new_subject() -> Callable[[], str]:
    """Names that no other test uses."""
    return lambda: f"subject-{next(_numbers)}"


@pytest.fixture
def subject(new_subject: Callable[[], str]) -> str:
    """One such name."""
    return new_subject()
