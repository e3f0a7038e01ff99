"""All floods at once: a broker's memory stays below a ceiling that its settings give, and an honest client is answered within a second."""

import contextlib
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.hostile.batches import batch_of_producer, error_code, produce_request, swollen_batch
from tests.hostile.floods import (
    COORDINATOR_NOT_AVAILABLE,
    FLOODS,
    GROUP_MAX_SIZE_REACHED,
    MIB,
    NONE,
    SERVED_WITHIN_S,
    Flood,
    answer,
    connect,
    fetch_of_many,
    fetch_request,
    find_coordinator,
    list_offsets_request,
    peak_bytes,
    records_in_flight,
    send_what_is_taken,
)
from tests.hostile.neighbour import NeighbourProcess
from tests.interop.clients import create_topic

#: The bounds that the floods run into.
_LIMITS = {
    "queued_max_request_bytes": 32 * MIB,
    "queued_max_response_bytes": 64 * MIB,
    "group_coordinator_max_bytes": 16 * MIB,
    "transaction_coordinator_max_bytes": 16 * MIB,
    "fetch_wait_max_partitions": 50_000,
    "producer_id_max_count": 1_000,
    "group_share_max_share_sessions": 1_000,
    "num_io_threads": 4,
    "num_network_threads": 2,
    "socket_request_receive_timeout_ms": 5_000,
}
#: What one of a number takes at most: a partition of a fetch that waits, a producer, a share session, a thread that opens a batch, a connection.
_EACH = {
    "fetch_wait_max_partitions": 400,
    "producer_id_max_count": 1_000,
    "group_share_max_share_sessions": 1_000,
    "num_io_threads": 2 * MIB,
    "num_network_threads": 8 * MIB,
    "connections": 128 * 1024,
}
_CONNECTIONS = 160
#: What an allocator keeps of what was given back, as a part of what was taken.
_KEPT = 0.5
_OPENED_BYTES = 250 * MIB
_REQUESTS = 12_000


def ceiling_bytes() -> int:
    """The most by which the memory of a broker with these settings grows."""
    numbers = {**_LIMITS, "connections": _CONNECTIONS}
    taken = sum(value for name, value in _LIMITS.items() if name.endswith("_bytes"))
    taken += sum(numbers[name] * each for name, each in _EACH.items())
    return int(taken * (1 + _KEPT))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker with these limits, a topic to attack, an empty one, and one for an honest client."""
    with LocalBroker(tmp_path, **_LIMITS) as broker:
        for name in ("attacked", "empty", "honest"):
            create_topic(broker.bootstrap_servers, name)
        with connect(broker) as sock:
            for kind in (0, 1):
                until(lambda kind=kind: find_coordinator(sock, kind) == NONE, "the coordinator is there")
            sock.sendall(produce_request("attacked", swollen()))
            assert error_code(answer(sock), "attacked") == NONE
        yield broker


_swollen: list[bytes] = []


def swollen() -> bytes:
    """A batch that is small on the wire and large when it is opened."""
    if not _swollen:
        _swollen.append(swollen_batch(_OPENED_BYTES))
    return _swollen[0]


class Attack:
    """All floods, each from an address of its own; they keep what they hold until all have sent what they send."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._over = threading.Event()
        self.loads: list[Callable[[str], None]] = [
            self.requests_that_never_end,
            self.fetches_that_wait,
            self.answers_that_nobody_reads,
            self.lookups_by_time,
            self.batches_that_open_to_much,
            self.producers,
            self.records_in_flight,
            *(lambda host, flood=flood: self.coordinators(host, flood) for flood in FLOODS.values()),
        ]

    def run(self) -> None:
        """Run all at once, to their end."""
        hosts = [f"127.0.1.{number}" for number in range(1, len(self.loads) + 1)]
        with ThreadPoolExecutor(len(self.loads)) as pool:
            running = [pool.submit(load, host) for load, host in zip(self.loads, hosts, strict=True)]
            holding = {self.fetches_that_wait, self.answers_that_nobody_reads}
            try:
                for load, one in zip(self.loads, running, strict=True):
                    if load not in holding:
                        one.result()
            finally:
                self._over.set()
            for one in running:
                one.result()

    def requests_that_never_end(self, host: str) -> None:
        with contextlib.ExitStack() as stack:
            attackers = [stack.enter_context(connect(self._broker, host)) for _ in range(6)]
            for attacker in attackers:
                send_what_is_taken(attacker, struct.pack(">i", 20 * MIB) + bytes(19 * MIB))
            for attacker in attackers:
                with contextlib.suppress(ConnectionError):
                    assert attacker.recv(1) == b""

    def fetches_that_wait(self, host: str) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                send_what_is_taken(
                    stack.enter_context(connect(self._broker, host)), fetch_request("empty", 10_000) * 64
                )
            self._over.wait()

    def answers_that_nobody_reads(self, host: str) -> None:
        with contextlib.ExitStack() as stack:
            request = fetch_of_many("empty", 36_000)
            for _ in range(96):
                send_what_is_taken(stack.enter_context(connect(self._broker, host)), request * 8)
            self._over.wait()

    def lookups_by_time(self, host: str) -> None:
        for one in self._flood(host, list_offsets_request("attacked", 1)):
            assert struct.unpack(">h", one[-18:-16]) == (NONE,)

    def batches_that_open_to_much(self, host: str) -> None:
        for one in self._flood(host, produce_request("attacked", swollen())):
            assert error_code(one, "attacked") == NONE

    def producers(self, host: str) -> None:
        with connect(self._broker, host) as sock:
            for first in range(0, 4 * _LIMITS["producer_id_max_count"], 100):
                batches = (batch_of_producer(number) for number in range(first, first + 100))
                sock.sendall(b"".join(produce_request("attacked", batch) for batch in batches))
                assert {error_code(answer(sock), "attacked") for _ in range(100)} == {NONE}

    def records_in_flight(self, _host: str) -> None:
        # The room for groups is used up by others, too, or at once.
        codes = records_in_flight(self._broker, "attacked", 20)
        assert codes <= {NONE, GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE}

    def coordinators(self, host: str, flood: Flood) -> None:
        with connect(self._broker, host) as sock:
            # Two of them share a room: one may find it full.
            codes = flood.send(sock, _REQUESTS)
            assert flood.refused in codes <= {flood.taken, flood.refused}

    def _flood(self, host: str, request: bytes) -> Iterator[bytes]:
        """Send the request on several connections before any answer is read; all answers."""
        with contextlib.ExitStack() as stack:
            attackers = [stack.enter_context(connect(self._broker, host)) for _ in range(4)]
            for attacker in attackers:
                attacker.sendall(request * 4)
            for attacker in attackers:
                for _ in range(4):
                    yield answer(attacker)


@pytest.mark.slow
def test_a_brokers_memory_stays_below_its_bounds_under_all_floods_at_once_and_an_honest_client_is_served(
    broker: LocalBroker,
) -> None:
    before = peak_bytes(broker)
    with NeighbourProcess(broker, "honest") as neighbour:
        Attack(broker).run()
    grown = peak_bytes(broker) - before
    print(f"grown by {grown / MIB:.0f} MiB of {ceiling_bytes() / MIB:.0f}, slowest answer {neighbour.slowest_s:.3f} s")
    assert grown < ceiling_bytes()
    assert neighbour.slowest_s < SERVED_WITHIN_S
