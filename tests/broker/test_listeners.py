"""Several listeners of one broker: each names its own address, has its own port, and the same log behind it."""

import contextlib
import socket

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark import start_broker
from pylog_spark.testing import LocalBroker, LocalBrokerError
from pylog_spark.testing.process import free_port
from tests.broker.wire import array, connect, text
from tests.harness.waiting import said, until

METADATA, FIND_COORDINATOR, API_VERSIONS = 3, 10, 18
TWO = {"INSIDE": "PLAINTEXT", "OUTSIDE": "PLAINTEXT"}


def metadata(address):
    """(host, port) of each broker, as Metadata over `address` has them."""
    with connect(address) as connection:
        answer = connection.ask(METADATA, 1, array([]))
        found = []
        for _ in range(answer.take("i")):
            answer.take("i")
            found.append((answer.text(), answer.take("i")))
            answer.text()
        return found


def coordinator(address):
    """(host, port) of the coordinator of a group, as FindCoordinator over `address` has it."""
    with connect(address) as connection:
        found = None

        def is_found():
            nonlocal found
            answer = connection.ask(FIND_COORDINATOR, 0, text("g"))
            error, _, *found = answer.take("h"), answer.take("i"), answer.text(), answer.take("i")
            return error == 0

        until(is_found, "the coordinator is there")
        return tuple(found)


def endpoint(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_each_listener_has_a_port_and_names_its_own_address(new_broker):
    broker = new_broker(listeners=TWO, inter_broker_listener_name="INSIDE")
    addresses = [broker.address_of(name) for name in TWO]
    assert len(set(addresses)) == 2
    assert broker.bootstrap_servers == addresses[0]
    for address in addresses:
        assert metadata(address) == [endpoint(address)]
        assert coordinator(address) == endpoint(address)


def test_each_listener_names_the_address_that_it_advertises(new_broker):
    broker = new_broker(
        listeners=TWO,
        inter_broker_listener_name="INSIDE",
        advertised_listeners="INSIDE://127.0.0.1:0,OUTSIDE://log.example:19093",
    )
    inside = broker.address_of("INSIDE")
    assert metadata(inside) == [endpoint(inside)]
    assert metadata(broker.address_of("OUTSIDE")) == [("log.example", 19093)]


def test_what_is_written_over_one_listener_is_read_over_the_other_and_after_a_restart(new_broker):
    broker = new_broker(listeners=TWO, inter_broker_listener_name="INSIDE")
    addresses = [broker.address_of(name) for name in TWO]
    admin = AdminClient({"bootstrap.servers": addresses[1]})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    for address in addresses:
        producer = Producer({"bootstrap.servers": address})
        producer.produce("t", address)
        assert producer.flush(60) == 0
    broker.restart()
    assert [broker.address_of(name) for name in TWO] == addresses
    for address in addresses:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", 0, 0)])
        read = [consumer.consume(1, 60)[0].value().decode() for _ in addresses]
        consumer.close()
        assert read == addresses


def test_a_port_that_is_taken_is_named_and_no_listener_stays_open(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # Nobody else gets the other one meanwhile.
        port, other = taken.getsockname()[1], free_port()
        with pytest.raises(Exception, match=rf"127\.0\.0\.1:{port} is already in use"):
            start_broker(
                tmp_path,
                listeners=f"A://127.0.0.1:{other},B://127.0.0.1:{port}",
                listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
            )
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", other), timeout=5)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_a_listener_that_other_machines_reach_and_that_is_not_encrypted_is_refused(tmp_path, protocol):
    broker = LocalBroker(tmp_path / "data", listeners={"OUTSIDE": protocol})
    broker.host = "0.0.0.0"
    try:
        with pytest.raises(LocalBrokerError, match=r"allow.plaintext.listeners=true"):
            broker.start()
    finally:
        broker.close()


def is_served(connection):
    try:
        return connection.ask(API_VERSIONS, 0, b"").take("h") == 0
    except (OSError, EOFError):
        return False


def test_an_address_has_no_more_connections_than_it_may_have_and_the_log_says_so(new_broker):
    broker = new_broker(max_connections_per_ip=2)
    with contextlib.ExitStack() as open_ones:
        first, second, third = (open_ones.enter_context(connect(broker.bootstrap_servers)) for _ in range(3))
        assert is_served(first)
        assert is_served(second)
        assert not is_served(third)
        said(broker, "max.connections.per.ip")
    until(lambda: _served_again(broker), "places are given back")


def _served_again(broker):
    with connect(broker.bootstrap_servers) as connection:
        return is_served(connection)


def test_an_address_may_have_more_connections_than_others(new_broker):
    broker = new_broker(max_connections_per_ip=0, max_connections_per_ip_overrides="localhost:5")
    with connect(broker.bootstrap_servers) as connection:
        assert is_served(connection)


def test_an_override_with_a_host_that_is_unknown_is_one_sentence(tmp_path):
    with pytest.raises(Exception, match=r"max.connections.per.ip.overrides has \"no.such.host.invalid:5\""):
        start_broker(tmp_path, max_connections_per_ip_overrides="no.such.host.invalid:5")
