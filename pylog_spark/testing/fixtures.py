"""Pytest fixtures for users: ``pytest_plugins = ["pylog_spark.testing.fixtures"]``."""

from collections.abc import Iterator

import pytest

from pylog_spark.testing.local_broker import LocalBroker


@pytest.fixture(scope="session")
def pylog_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A running broker with an empty directory, one for the whole test session."""
    with LocalBroker(tmp_path_factory.mktemp("pylog")) as broker:
        yield broker
