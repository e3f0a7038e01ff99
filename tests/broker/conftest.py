"""Brokers for these tests: real child processes, each with an empty directory."""

import pytest
from confluent_kafka.admin import AdminClient

from pylog_spark.testing import LocalBroker


@pytest.fixture
def new_broker(tmp_path):
    """Make brokers: `new_broker(num_partitions=4)`; all of them are stopped at the end."""
    brokers = []

    def make(directory="data", **settings):
        broker = LocalBroker(tmp_path / directory, **settings)
        brokers.append(broker)
        return broker.start()

    yield make
    for broker in brokers:
        broker.close()


@pytest.fixture
def broker(new_broker):
    return new_broker()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One broker for the tests of a file that leave each other alone."""
    with LocalBroker(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def admin_of():
    """AdminClients of a broker: `admin_of(broker)`."""

    def make(broker):
        return AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    return make
