"""The broker that other clients share."""

import os
from collections.abc import Iterator

import pytest

from tests.harness.brokers import pylog


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As the one of all tests, but the first member of a group does not wait for others to join it."""
    given = os.environ.get("PYLOG_TEST_SERVERS")
    if given:
        yield given
        return
    with pylog(tmp_path_factory.mktemp("broker"), group_initial_rebalance_delay_ms="0") as running:
        yield running
