"""Bytes on a socket: versions, hostile frames, pipelining, many idle connections, many partitions."""

import contextlib
import resource
import struct
import time

import pytest
from confluent_kafka.admin import NewTopic

from tests.broker.wire import array, connect, room_for, text

API_VERSIONS, METADATA, PRODUCE, FETCH, CREATE_TOPICS, DESCRIBE_CONFIGS = 18, 3, 0, 1, 19, 32
UNSUPPORTED_VERSION = 35

# FACTS: tier 0, (key, minimum shown, maximum shown at least).
TIER_0 = {18: (0, 4), 3: (0, 12), 0: (0, 11), 1: (4, 12), 2: (1, 10), 22: (0, 5), 19: (2, 7), 20: (1, 6), 32: (1, 4)}


def ranges(answer):
    error = answer.take("h")
    return error, {answer.take("h"): (answer.take("h"), answer.take("h")) for _ in range(answer.take("i"))}


def create_topic(connection, name, partitions=1):
    topic = text(name) + struct.pack(">ih", partitions, 1) + array([]) + array([])
    answer = connection.ask(CREATE_TOPICS, 2, array([topic]) + struct.pack(">i?", 10_000, False))
    assert answer.take("i") == 0
    assert answer.take("i") == 1
    assert answer.text() == name
    return answer.take("h"), answer.text()


def test_the_versions_promised_are_advertised(shared):
    with connect(shared.bootstrap_servers) as connection:
        error, shown = ranges(connection.ask(API_VERSIONS, 0, b""))
    assert error == 0
    for key, (low, high) in TIER_0.items():
        assert shown[key][0] <= low, key
        assert shown[key][1] >= high, key


def test_produce_is_advertised_from_zero_or_librdkafka_sends_uncompressed(shared):
    # confluentinc/librdkafka#4956, KAFKA-18659
    with connect(shared.bootstrap_servers) as connection:
        _, shown = ranges(connection.ask(API_VERSIONS, 0, b""))
    assert shown[PRODUCE][0] == 0


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_ranges(shared):
    # Bronya0/Kafka-King#100, streamnative/kop#176: closing the socket breaks new clients.
    with connect(shared.bootstrap_servers) as connection:
        error, shown = ranges(connection.ask(API_VERSIONS, 99, b"\0" * 8))
        assert error == UNSUPPORTED_VERSION
        assert API_VERSIONS in shown
        assert ranges(connection.ask(API_VERSIONS, 0, b""))[0] == 0


def test_metadata_names_the_address_that_the_client_dialled(shared):
    for host in ("127.0.0.1", "localhost"):
        with connect(f"{host}:{shared.port}") as connection:
            answer = connection.ask(METADATA, 1, array([]))
            assert answer.take("i") == 1
            assert answer.take("i") == 1
            assert answer.text() == "127.0.0.1"
            assert answer.take("i") == shared.port


def test_requests_of_one_connection_are_answered_in_order(shared):
    with connect(shared.bootstrap_servers) as connection:
        sent = [connection.send(API_VERSIONS, 0, b"") for _ in range(50)]
        sent.append(connection.send(DESCRIBE_CONFIGS, 1, array([struct.pack(">b", 4) + text("1") + array([])]) + b"\0"))
        sent += [connection.send(METADATA, 1, array([])) for _ in range(50)]
        assert [connection.receive()[0] for _ in sent] == sent


def test_a_topic_is_created_over_a_raw_socket_and_once_only(shared):
    with connect(shared.bootstrap_servers) as connection:
        assert create_topic(connection, "raw") == (0, None)
        code, sentence = create_topic(connection, "raw")
        assert code == 36
        assert sentence.startswith("Topic 'raw' already exists")
        assert create_topic(connection, "..")[0] == 17


@pytest.mark.parametrize("length", [-1, -2, 2**31 - 16, 2**31 - 1, 101 * 2**20, 3])
def test_a_frame_of_impossible_length_closes_the_connection_and_only_that_one(shared, length):
    with connect(shared.bootstrap_servers) as connection:
        connection.socket.sendall(struct.pack(">i", length) + b"abc")
        assert connection.closed()
    with connect(shared.bootstrap_servers) as connection:
        assert ranges(connection.ask(API_VERSIONS, 0, b""))[0] == 0


def test_idle_connections_cost_little_and_do_not_keep_others_waiting(broker):
    count = 1000
    with room_for(count), contextlib.ExitStack() as held:
        connections = [held.enter_context(connect(broker.bootstrap_servers)) for _ in range(count)]
        for connection in connections:
            connection.send(API_VERSIONS, 0, b"")
        for connection in connections:
            connection.receive()
        assert resident_mib(broker.pid) < 150
        started = time.monotonic()
        with connect(broker.bootstrap_servers) as connection:
            assert ranges(connection.ask(API_VERSIONS, 0, b""))[0] == 0
        assert time.monotonic() - started < 30


def resident_mib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def test_an_idle_broker_is_small(broker):
    with connect(broker.bootstrap_servers) as connection:
        assert ranges(connection.ask(API_VERSIONS, 0, b""))[0] == 0
    assert resident_mib(broker.pid) <= 64


@pytest.mark.long  # few of them: test_life.py
def test_a_thousand_partitions_are_created_and_come_back_after_a_stop_and_a_kill(broker, admin_of):
    admin = admin_of(broker)
    admin.create_topics([NewTopic("many", 1000, 1)])["many"].result(60)
    for stop in (broker.terminate, broker.kill):
        stop()
        broker.start()
        assert len(admin_of(broker).list_topics(timeout=60).topics["many"].partitions) == 1000
        # Measured about 0.3 s on two idle cores; the bound leaves room for a busy machine.
        assert broker.start_seconds < 15
