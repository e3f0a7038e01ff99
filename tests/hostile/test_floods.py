"""Floods of requests that cost a broker much and their sender little: whoever is honest is answered within a second meanwhile."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.client.admin import Admin
from pylog_spark.testing import LocalBroker
from tests.hostile.batches import batch_of_producer, error_code, plain_batch, produce_request, swollen_batch
from tests.hostile.neighbour import Neighbour
from tests.hostile.requests import framed
from tests.interop.clients import create_topic
from tests.peers.probe import answers, read_exactly

_SERVED_WITHIN_S = 1.0
_PATIENCE_S = 120.0
_MIB = 1024 * 1024
# Opened, the records of one swollen batch have nearly as much as a broker takes (256 MiB).
_OPENED_BYTES = 250 * _MIB
_FLOOD_CONNECTIONS = 4
_FLOOD_REQUESTS = 6
_PRODUCERS_MAX = 1_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that remembers few producers, with a topic to attack, and one for an honest client."""
    with LocalBroker(tmp_path_factory.mktemp("flooded"), producer_id_max_count=_PRODUCERS_MAX) as broker:
        create_topic(broker.bootstrap_servers, "attacked")
        create_topic(broker.bootstrap_servers, "empty")
        create_topic(broker.bootstrap_servers, "honest")
        yield broker


@pytest.fixture(scope="module")
def swollen() -> bytes:
    """A batch that is small on the wire and large when it is opened; only its last record is of the millisecond 1."""
    return swollen_batch(_OPENED_BYTES)


def _connect(broker: LocalBroker, from_host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=_PATIENCE_S, source_address=(from_host, 0))


def _answer(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def _list_offsets_request(topic: str, timestamp_ms: int) -> bytes:
    """ListOffsets v1 of partition 0."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    return framed(struct.pack(">hhihii", 2, 1, 1, -1, -1, 1) + name + struct.pack(">iiq", 1, 0, timestamp_ms))


def _flood(broker: LocalBroker, request: bytes) -> list[bytes]:
    """Send the request several times on several connections before any answer is read; all answers."""
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(_connect(broker)) for _ in range(_FLOOD_CONNECTIONS)]
        for attacker in attackers:
            attacker.sendall(request * _FLOOD_REQUESTS)
        return [_answer(attacker) for attacker in attackers for _ in range(_FLOOD_REQUESTS)]


def _peak_bytes(broker: LocalBroker) -> int:
    """The most memory that the broker has had so far."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return peak * 1024


def test_requests_that_claim_much_and_hardly_arrive_hold_nobody_up(broker: LocalBroker) -> None:
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(_connect(broker)) for _ in range(3)]
        for attacker in attackers:
            attacker.sendall(struct.pack(">i", 100 * _MIB) + bytes(100_000))
        with Neighbour(broker, "honest", plain_batch(300_000)) as neighbour:
            for _ in range(20):
                for attacker in attackers:
                    attacker.sendall(b"x")
                assert answers(broker.host, broker.port, _SERVED_WITHIN_S)
        assert neighbour.slowest_s < _SERVED_WITHIN_S


def test_an_address_that_fills_memory_with_requests_that_never_end_holds_no_other_up(tmp_path: Path) -> None:
    limits = {"queued_max_request_bytes": 32 * _MIB, "socket_request_receive_timeout_ms": 5_000}
    with LocalBroker(tmp_path, **limits) as broker, contextlib.ExitStack() as stack:
        create_topic(broker.bootstrap_servers, "honest")
        before = _peak_bytes(broker)
        attackers = [stack.enter_context(_connect(broker, from_host="127.0.0.2")) for _ in range(6)]
        with Neighbour(broker, "honest", plain_batch(300_000)) as neighbour:
            for attacker in attackers:
                _send_what_is_taken(attacker, struct.pack(">i", 20 * _MIB) + bytes(19 * _MIB))
            for attacker in attackers:
                with pytest.raises(ConnectionError):
                    read_exactly(attacker, 1)
        assert neighbour.slowest_s < _SERVED_WITHIN_S
        assert _peak_bytes(broker) - before < 128 * _MIB


def test_producers_without_end_are_remembered_up_to_the_bound_and_hold_nobody_up(broker: LocalBroker) -> None:
    before = _peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour, _connect(broker) as attacker:
        for first in range(0, 4 * _PRODUCERS_MAX, 100):
            batches = (batch_of_producer(number) for number in range(first, first + 100))
            attacker.sendall(b"".join(produce_request("attacked", batch) for batch in batches))
            assert {error_code(_answer(attacker), "attacked") for _ in range(100)} == {0}
    assert neighbour.slowest_s < _SERVED_WITHIN_S
    assert _peak_bytes(broker) - before < 64 * _MIB
    assert "more producers than producer.id.max.count" in broker.logs()
    with Admin(broker.bootstrap_servers) as admin:
        (remembered,) = [found["producers"] for found in admin.producers([("attacked", 0)])]
    assert 0 < len(remembered) <= _PRODUCERS_MAX


def test_fetches_of_many_partitions_that_wait_for_records_hold_nobody_up_and_take_little_memory(
    broker: LocalBroker,
) -> None:
    before = _peak_bytes(broker)
    request = _fetch_request("empty", 10_000)
    with contextlib.ExitStack() as stack:
        neighbour = stack.enter_context(Neighbour(broker, "honest"))
        for _ in range(_FLOOD_CONNECTIONS):
            _send_what_is_taken(stack.enter_context(_connect(broker)), request * 64)
        for _ in range(20):
            assert answers(broker.host, broker.port, _SERVED_WITHIN_S)
    assert neighbour.slowest_s < _SERVED_WITHIN_S
    assert _peak_bytes(broker) - before < 64 * _MIB


def _fetch_request(topic: str, count: int) -> bytes:
    """Fetch v4 of partition 0, named `count` times, that waits for up to ten minutes."""
    name = struct.pack(">h", len(topic)) + topic.encode()
    partitions = struct.pack(">i", count) + struct.pack(">iqi", 0, 0, 1) * count
    wait = struct.pack(">iiiib", -1, 600_000, 1, 1_000, 0)
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + wait + struct.pack(">i", 1) + name + partitions)


def _send_what_is_taken(sock: socket.socket, data: bytes) -> None:
    """Send as much as the broker reads; it stops when it has no room."""
    sock.settimeout(0.2)
    with contextlib.suppress(TimeoutError, ConnectionError):
        sock.sendall(data)
    sock.settimeout(_PATIENCE_S)


def test_lookups_by_time_in_compressed_batches_hold_nobody_up_and_take_little_memory(
    broker: LocalBroker, swollen: bytes
) -> None:
    with _connect(broker) as sock:
        sock.sendall(produce_request("attacked", swollen))
        assert error_code(_answer(sock), "attacked") == 0
    before = _peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour:
        answered = _flood(broker, _list_offsets_request("attacked", 1))
    assert {struct.unpack(">hqq", answer[-18:])[0:2] for answer in answered} == {(0, 1)}
    assert neighbour.slowest_s < _SERVED_WITHIN_S
    assert _peak_bytes(broker) - before < 64 * _MIB


def test_produced_batches_that_open_to_much_hold_nobody_up(broker: LocalBroker, swollen: bytes) -> None:
    with Neighbour(broker, "honest") as neighbour:
        answered = _flood(broker, produce_request("attacked", swollen))
    assert {error_code(answer, "attacked") for answer in answered} == {0}
    assert neighbour.slowest_s < _SERVED_WITHIN_S
