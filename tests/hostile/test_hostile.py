"""Bytes from an enemy at a live broker: it neither dies nor swells, and a fresh client is served within a second."""

import random
import socket
import struct
from collections.abc import Iterator

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.runs import rounds, seed
from tests.hostile.batches import error_code, good_batch, lying_batches, mutated_batch, produce_request
from tests.hostile.exchange import advertised, exchange
from tests.hostile.floods import ANSWERED_WITHIN_S, peak_bytes
from tests.hostile.requests import (
    framed,
    hostile_requests,
    mutated_request,
    random_request,
    request,
    requests_that_are_answered,
)
from tests.interop.clients import create_topic
from tests.peers.probe import answers, read_exactly

HOSTILE = (2**31 - 16, 2**32 - 1, -2)
RSS_OVER_BASE_MAX_BYTES = 64 * 1024 * 1024
SEED = seed("PYLOG_HOSTILE_SEED")
MUTATIONS = rounds("PYLOG_HOSTILE_MUTATIONS", 1_000, 3_000)
_ANSWER_DEADLINE_S = 30
_CHECK_EVERY = 200
_NONE, _CORRUPT_MESSAGE, _INVALID_RECORD = 0, 2, 87


class Victim:
    """A broker and what it must keep to under attack."""

    def __init__(self, broker: LocalBroker) -> None:
        self.broker = broker
        self.ranges = advertised(broker)
        self._base_bytes = peak_bytes(self.broker)

    def attack(self, data: bytes, what: str, end: bool = False) -> str:
        """As `exchange`."""
        return exchange(self.broker, data, what, end)

    def check(self, after: str) -> None:
        """Alive, not swollen, and serving."""
        assert self.broker.running, f"the broker died after {after}: {self.broker.logs()[-3000:]}"
        grown = peak_bytes(self.broker) - self._base_bytes
        assert grown < RSS_OVER_BASE_MAX_BYTES, f"the broker grew by {grown:,} bytes until {after}"
        assert answers(self.broker.host, self.broker.port, ANSWERED_WITHIN_S), f"no answer in time after {after}"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    """A broker with a topic for whole batches; the requests that ask for their own make it by asking."""
    with LocalBroker(tmp_path_factory.mktemp("victim")) as broker:
        create_topic(broker.bootstrap_servers, "batches")
        yield Victim(broker)


def test_the_honest_request_of_every_advertised_version_is_answered(victim: Victim) -> None:
    for api_key, version in requests_that_are_answered(victim.ranges):
        data = framed(bytes(request(api_key, version).data))
        assert victim.attack(data, f"API {api_key} v{version}") == "answered", f"API {api_key} v{version}"
    victim.check("the honest requests")


@pytest.mark.peers
def test_a_hostile_length_in_any_field_of_any_request_harms_nobody(victim: Victim) -> None:
    outcomes = {"answered": 0, "closed": 0}
    for number, (what, data) in enumerate(hostile_requests(victim.ranges, HOSTILE)):
        outcomes[victim.attack(data, what)] += 1
        if number % _CHECK_EVERY == 0:
            victim.check(what)
    victim.check("the last request")
    assert outcomes["closed"] > 500, f"the lengths did not bite: {outcomes}"


@pytest.mark.parametrize("size", [2**31 - 16, 2**31 - 1, -1, -2, -(2**31)])
def test_a_hostile_frame_size_closes_the_connection(victim: Victim, size: int) -> None:
    with socket.create_connection((victim.broker.host, victim.broker.port), timeout=_ANSWER_DEADLINE_S) as sock:
        sock.sendall(struct.pack(">i", size) + bytes(1_000))
        with pytest.raises(ConnectionError):
            read_exactly(sock, 1)
    victim.check(f"a frame size of {size}")


@pytest.mark.peers
def test_mutated_requests_harm_nobody(victim: Victim) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_HOSTILE_SEED to repeat")
    versions = requests_that_are_answered(victim.ranges)
    for number in range(MUTATIONS):
        what, data = mutated_request(versions, randomness)
        victim.attack(data, f"{what}, number {number}, seed {SEED}", end=True)
        if number % _CHECK_EVERY == 0:
            victim.check(f"mutation {number}, seed {SEED}")
    victim.check("the last mutation")


def test_random_bytes_harm_nobody(victim: Victim) -> None:
    randomness = random.Random(SEED)
    for number in range(MUTATIONS // 3):
        victim.attack(random_request(randomness), f"random bytes {number}, seed {SEED}", end=True)
    victim.check("the random bytes")


@pytest.mark.parametrize(
    ("what", "batch"), list(lying_batches(HOSTILE)), ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_batch_that_lies_about_its_lengths_is_refused(victim: Victim, what: str, batch: bytes) -> None:
    assert _produced(victim, good_batch()) == _NONE
    assert _produced(victim, batch) in (_CORRUPT_MESSAGE, _INVALID_RECORD)
    victim.check(what)


def _produced(victim: Victim, batch: bytes) -> int:
    """Error code of producing `batch` to the topic "batches"."""
    with socket.create_connection((victim.broker.host, victim.broker.port), timeout=_ANSWER_DEADLINE_S) as sock:
        sock.sendall(produce_request("batches", batch))
        (size,) = struct.unpack(">i", read_exactly(sock, 4))
        return error_code(read_exactly(sock, size), "batches")


def test_mutated_batches_with_a_right_checksum_harm_nobody(victim: Victim) -> None:
    randomness = random.Random(SEED)
    codes = [_produced(victim, mutated_batch(randomness)) for _ in range(MUTATIONS // 10)]
    assert sum(code != _NONE for code in codes) > len(codes) / 10, f"seed {SEED}: {codes}"
    victim.check(f"mutated batches, seed {SEED}")
    assert _produced(victim, good_batch()) == _NONE


def test_two_hundred_connections_that_send_half_a_frame_hold_nobody_up(victim: Victim) -> None:
    half = struct.pack(">i", 1_000_000) + bytes(1_000)
    connections = [socket.create_connection((victim.broker.host, victim.broker.port)) for _ in range(200)]
    try:
        for connection in connections:
            connection.sendall(half)
        victim.check("200 half frames")
    finally:
        for connection in connections:
            connection.close()
