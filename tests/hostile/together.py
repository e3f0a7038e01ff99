"""All floods at once, and the memory that a broker may take meanwhile.

The same floods for a test with small bounds, which runs them once, and for a long run, which repeats them.
"""

import contextlib
import functools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from pylog_spark.broker.config import broker_config, keyword_settings
from pylog_spark.testing import LocalBroker
from tests.hostile.batches import batch_of_producer, error_code, produce_request, swollen_batch
from tests.hostile.floods import (
    FLOODS,
    MIB,
    NONE,
    Flood,
    answer,
    connect,
    fetch_of_many,
    fetch_request,
    list_offsets_request,
    metadata_of_many,
    offset_fetch_of_many,
    send_what_is_taken,
)
from tests.hostile.neighbour import Address

#: The bounds that the floods run into: bytes,
_BYTES = (
    "queued_max_request_bytes",
    "queued_max_response_bytes",
    "group_coordinator_max_bytes",
    "transaction_coordinator_max_bytes",
)
#: and numbers, with what one takes at most: a partition of a fetch that waits, a producer, a share session, a thread that opens a batch, a
#: connection.
_EACH = {
    "fetch_wait_max_partitions": 400,
    "producer_id_max_count": 1_000,
    "group_share_max_share_sessions": 1_000,
    "num_io_threads": 2 * MIB,
    "num_network_threads": 8 * MIB,
}
_CONNECTION = 128 * 1024
#: What an allocator keeps of what was given back, as a part of what was taken.
_KEPT = 0.5
#: Opened, the records of one swollen batch have nearly as much as a broker takes (256 MiB).
OPENED_BYTES = 250 * MIB


def ceiling_bytes(settings: Mapping[str, object], connections: int) -> int:
    """The most by which the memory of a broker with these settings (else the defaults) grows, whatever is sent to its partitions'
    records, groups and transactions; what topics and logs take is not in it.
    """
    config = broker_config(keyword_settings(settings))
    value = {name: config.number(name.replace("_", ".")) for name in (*_BYTES, *_EACH)}
    # Answers that wait for room have a quarter of it in addition.
    waiting = value["queued_max_response_bytes"] // 4
    taken = waiting + sum(value[name] for name in _BYTES) + sum(value[name] * each for name, each in _EACH.items())
    return int((taken + connections * _CONNECTION) * (1 + _KEPT))


@functools.cache
def swollen() -> bytes:
    """A batch that is small on the wire and large when it is opened."""
    return swollen_batch(OPENED_BYTES)


class AllFloods:
    """All floods, each from an address of its own; they keep what they hold until all have sent what they send.

    Parameters
    ----------
    broker : LocalBroker or Address
        Has the topics "attacked", with a swollen batch in it, and "empty".
    requests : int
        How many each flood of a coordinator sends.
    producers : int
        How many idempotent producers write.
    first : int
        The number of the first group, id and producer: of a second round others than of the first.
    until_closed : bool
        Whether to wait until the broker closes requests that never end. Apache Kafka does so after ten minutes only.

    Attributes
    ----------
    codes : dict
        How often each error code came back, by the flood's name.
    """

    def __init__(
        self,
        broker: LocalBroker | Address,
        requests: int,
        producers: int,
        first: int = 0,
        *,
        until_closed: bool = True,
    ) -> None:
        self._broker = broker
        self._until_closed = until_closed
        self._requests, self._producers, self._first = requests, producers, first
        self._over = threading.Event()
        self.codes: dict[str, Counter[int]] = {}
        self.loads: list[Callable[[str], None]] = [
            self.requests_that_never_end,
            self.fetches_that_wait,
            self.answers_that_nobody_reads,
            self.other_answers_that_nobody_reads,
            self.lookups_by_time,
            self.batches_that_open_to_much,
            self.producers,
            *(functools.partial(self.coordinators, name=name, flood=flood) for name, flood in FLOODS.items()),
        ]

    def run(self) -> None:
        """Run all at once, to their end."""
        hosts = [f"127.0.1.{number}" for number in range(1, len(self.loads) + 1)]
        with ThreadPoolExecutor(len(self.loads)) as pool:
            running = [pool.submit(load, host) for load, host in zip(self.loads, hosts, strict=True)]
            holding = [self.fetches_that_wait, self.answers_that_nobody_reads, self.other_answers_that_nobody_reads]
            holding += [] if self._until_closed else [self.requests_that_never_end]
            try:
                for load, future in zip(self.loads, running, strict=True):
                    if load not in holding:
                        future.result()
            finally:
                self._over.set()
            for future in running:
                future.result()

    def requests_that_never_end(self, host: str) -> None:
        """They fill the room for requests until they are closed, or until all others have sent what they send."""
        with contextlib.ExitStack() as stack:
            attackers = fill_requests(stack, self._broker, host)
            if not self._until_closed:
                self._over.wait()
                return
            for attacker in attackers:
                with contextlib.suppress(ConnectionError):
                    assert attacker.recv(1) == b""

    def fetches_that_wait(self, host: str) -> None:
        """Of many partitions each, for records that do not come."""
        with contextlib.ExitStack() as stack:
            hold_fetches(stack, self._broker, host)
            self._over.wait()

    def answers_that_nobody_reads(self, host: str) -> None:
        """Large ones, to fetches of many partitions."""
        with contextlib.ExitStack() as stack:
            hold_answers(stack, self._broker, host)
            self._over.wait()

    def other_answers_that_nobody_reads(self, host: str) -> None:
        """Large ones, to other requests that name much."""
        with contextlib.ExitStack() as stack:
            hold_other_answers(stack, self._broker, host)
            self._over.wait()

    def lookups_by_time(self, host: str) -> None:
        """In a compressed batch, at its end."""
        for response in flood(self._broker, host, list_offsets_request("attacked", 1)):
            assert struct.unpack(">h", response[-18:-16]) == (NONE,)

    def batches_that_open_to_much(self, host: str) -> None:
        """All of them are taken."""
        for response in flood(self._broker, host, produce_request("attacked", swollen())):
            assert error_code(response, "attacked") == NONE

    def producers(self, host: str) -> None:
        """Each writes once."""
        with connect(self._broker, host) as sock:
            assert set(send_producers(sock, self._producers, self._first)) == {NONE}

    def coordinators(self, host: str, name: str, flood: Flood) -> None:
        """Groups, members and transactional ids."""
        with connect(self._broker, host) as sock:
            self.codes[name] = flood.send(sock, self._requests, first=self._first)
            assert set(self.codes[name]) <= {flood.taken, flood.refused}


def fill_requests(
    stack: contextlib.ExitStack, broker: LocalBroker | Address, host: str, count: int = 6
) -> list[socket.socket]:
    """Connections with a large request each that lacks its end."""
    attackers = [stack.enter_context(connect(broker, host)) for _ in range(count)]
    for attacker in attackers:
        send_what_is_taken(attacker, struct.pack(">i", 20 * MIB) + bytes(19 * MIB))
    return attackers


def hold_fetches(stack: contextlib.ExitStack, broker: LocalBroker | Address, host: str, count: int = 8) -> None:
    """Connections with fetches of many partitions that wait."""
    for _ in range(count):
        send_what_is_taken(stack.enter_context(connect(broker, host)), fetch_request("empty", 10_000) * 64)


def hold_answers(stack: contextlib.ExitStack, broker: LocalBroker | Address, host: str, count: int = 96) -> None:
    """Connections with large responses that no client reads."""
    request = fetch_of_many("empty", 36_000)
    for _ in range(count):
        send_what_is_taken(stack.enter_context(connect(broker, host)), request * 8)


def hold_other_answers(stack: contextlib.ExitStack, broker: LocalBroker | Address, host: str) -> None:
    """56 connections with requests that ask for much at once, and with several of those that ask for less, whose responses no client reads."""
    loads = (
        (32, 1, offset_fetch_of_many("empty", 500_000)),
        (12, 8, offset_fetch_of_many("empty", 100_000)),
        (12, 8, metadata_of_many(30_000)),
    )
    for connections, times, request in loads:
        for _ in range(connections):
            send_what_is_taken(stack.enter_context(connect(broker, host)), request * times)


def send_producers(sock: socket.socket, count: int, first: int = 0, together: int = 100) -> Counter[int]:
    """One batch of each of so many idempotent producers to "attacked"; how often each error code came back."""
    codes: Counter[int] = Counter()
    for begin in range(first, first + count, together):
        batches = (batch_of_producer(number) for number in range(begin, begin + together))
        sock.sendall(b"".join(produce_request("attacked", batch) for batch in batches))
        codes.update(error_code(answer(sock), "attacked") for _ in range(together))
    return codes


def flood(
    broker: LocalBroker | Address, host: str, request: bytes, connections: int = 4, each: int = 4
) -> Iterator[bytes]:
    """Send the request several times on several connections before any answer is read; all answers."""
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(connect(broker, host)) for _ in range(connections)]
        for attacker in attackers:
            attacker.sendall(request * each)
        for attacker in attackers:
            for _ in range(each):
                yield answer(attacker)
