"""Floods of requests that cost a broker much and their sender little: honest clients are answered within a second meanwhile."""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pylog_spark.client.admin import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import said, until
from tests.hostile.batches import TAKES_ZSTD, error_code, keyless_batch, plain_batch, produce_request
from tests.hostile.floods import (
    ANSWERED_WITHIN_S,
    MIB,
    SERVED_WITHIN_S,
    alter_configs,
    answer,
    commit_of_many,
    connect,
    describe_configs,
    fetch_of_many,
    fetch_request,
    find_coordinator,
    list_offsets_request,
    metadata_of_many,
    offset_fetch_of_many,
    peak_bytes,
    produce_of_many,
    send_what_is_taken,
)
from tests.hostile.neighbour import Clock, Neighbour, NeighbourProcess
from tests.hostile.together import flood, send_producers, swollen
from tests.interop.clients import create_topic
from tests.peers.probe import answers, read_exactly

_FLOOD_CONNECTIONS = 4
_FLOOD_REQUESTS = 6
_FLOOD_HOSTS = 4
_PRODUCERS_MAX = 1_000
_INVALID_RECORD = 87
_BROKER = 4


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker that remembers few producers, with a topic to attack, and one for an honest client. It keeps records of 1970, too."""
    limits = {"producer_id_max_count": _PRODUCERS_MAX, "log_retention_ms": -1}
    with LocalBroker(tmp_path_factory.mktemp("flooded"), **limits) as broker:
        create_topic(broker.bootstrap_servers, "attacked")
        create_topic(broker.bootstrap_servers, "empty")
        create_topic(broker.bootstrap_servers, "honest")
        create_topic(broker.bootstrap_servers, "compacted", config={"cleanup.policy": "compact"})
        yield broker


def _flood(broker: LocalBroker, request: bytes) -> list[bytes]:
    """All answers to a flood of the request."""
    return list(flood(broker, "127.0.0.1", request, _FLOOD_CONNECTIONS, _FLOOD_REQUESTS))


def test_requests_that_claim_much_and_hardly_arrive_hold_nobody_up(broker: LocalBroker) -> None:
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(connect(broker)) for _ in range(3)]
        for attacker in attackers:
            attacker.sendall(struct.pack(">i", 100 * MIB) + bytes(100_000))
        with Neighbour(broker, "honest", plain_batch(300_000)) as neighbour:
            for _ in range(20):
                for attacker in attackers:
                    attacker.sendall(b"x")
                assert answers(broker.host, broker.port, ANSWERED_WITHIN_S)
        assert neighbour.slowest_s < SERVED_WITHIN_S


@pytest.mark.long  # test_hostile.py
def test_an_address_that_fills_memory_with_requests_that_never_end_holds_no_other_up(tmp_path: Path) -> None:
    limits = {"queued_max_request_bytes": 32 * MIB, "socket_request_receive_timeout_ms": 5_000}
    with LocalBroker(tmp_path, **limits) as broker, contextlib.ExitStack() as stack:
        create_topic(broker.bootstrap_servers, "honest")
        before = peak_bytes(broker)
        attackers = [stack.enter_context(connect(broker, from_host="127.0.0.2")) for _ in range(6)]
        with Neighbour(broker, "honest", plain_batch(300_000)) as neighbour:
            for attacker in attackers:
                send_what_is_taken(attacker, struct.pack(">i", 20 * MIB) + bytes(19 * MIB))
            for attacker in attackers:
                with pytest.raises(ConnectionError):
                    read_exactly(attacker, 1)
        assert neighbour.slowest_s < SERVED_WITHIN_S
        assert peak_bytes(broker) - before < 128 * MIB


def test_producers_without_end_are_remembered_up_to_the_bound_and_hold_nobody_up(broker: LocalBroker) -> None:
    before = peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour, connect(broker) as attacker:
        assert set(send_producers(attacker, 4 * _PRODUCERS_MAX)) == {0}
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB
    said(broker, "more producers than producer.id.max.count")
    with Admin(broker.bootstrap_servers) as admin:
        (remembered,) = [found.producers for found in admin.producers([("attacked", 0)])]
    assert 0 < len(remembered) <= _PRODUCERS_MAX


def test_fetches_of_many_partitions_that_wait_for_records_hold_nobody_up_and_take_little_memory(
    broker: LocalBroker,
) -> None:
    before = peak_bytes(broker)
    request = fetch_request("empty", 10_000)
    with contextlib.ExitStack() as stack:
        neighbour = stack.enter_context(Neighbour(broker, "honest"))
        for _ in range(_FLOOD_CONNECTIONS):
            send_what_is_taken(stack.enter_context(connect(broker)), request * 64)
        for _ in range(20):
            assert answers(broker.host, broker.port, ANSWERED_WITHIN_S)
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB


@pytest.mark.parametrize(
    "request_of_many",
    [
        pytest.param(fetch_of_many("empty", 36_000), id="Fetch", marks=pytest.mark.long),
        pytest.param(commit_of_many("empty", 100_000), id="OffsetCommit", marks=pytest.mark.long),
        pytest.param(produce_of_many("empty", 50_000), id="Produce", marks=pytest.mark.long),
    ],
)
def test_requests_that_name_many_partitions_over_many_connections_hold_nobody_up(
    broker: LocalBroker, request_of_many: bytes
) -> None:
    with connect(broker) as sock:
        until(lambda: find_coordinator(sock, 0) == 0, "the coordinator is there")
    with NeighbourProcess(broker, "honest") as neighbour, ThreadPoolExecutor(_FLOOD_HOSTS) as pool:
        hosts = [f"127.0.3.{number}" for number in range(1, _FLOOD_HOSTS + 1)]
        sizes = list(pool.map(lambda host: {len(each) for each in flood(broker, host, request_of_many, 16, 3)}, hosts))
    assert sizes[0] == set.union(*sizes), "all have the same answer"
    assert neighbour.slowest_s < SERVED_WITHIN_S


def test_large_answers_that_nobody_reads_take_little_memory_and_hold_no_other_up(tmp_path: Path) -> None:
    with LocalBroker(tmp_path, queued_max_response_bytes=32 * MIB) as broker, contextlib.ExitStack() as stack:
        create_topic(broker.bootstrap_servers, "honest")
        with connect(broker) as sock:
            until(lambda: find_coordinator(sock, 0) == 0, "the coordinator is there")
        before = peak_bytes(broker)
        # The first are larger than one request may be, the others than an address may have together.
        requests = (
            offset_fetch_of_many("none", 500_000),
            offset_fetch_of_many("none", 60_000),
            metadata_of_many(20_000),
        )
        with Neighbour(broker, "honest") as neighbour:
            for request in requests:
                for _ in range(40):
                    attacker = stack.enter_context(connect(broker, from_host="127.0.0.2"))
                    # No client reads, so the broker's sockets take little.
                    attacker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    with contextlib.suppress(ConnectionError):
                        attacker.sendall(request)
            said(broker, "queued.max.response.bytes")
        assert neighbour.slowest_s < SERVED_WITHIN_S
        assert peak_bytes(broker) - before < 96 * MIB


def test_requests_about_settings_that_name_much_are_answered_soon_and_take_little_memory(broker: LocalBroker) -> None:
    before = peak_bytes(broker)
    floods = (
        describe_configs([(_BROKER, "1", None)] * 13_000),
        describe_configs([(_BROKER, "1", [f"key-{number}" for number in range(50_000)])]),
        alter_configs(20_000),
    )
    for request in floods:
        clock = Clock({broker.pid, os.getpid()})
        began = clock.read()
        with connect(broker) as attacker, connect(broker, from_host="127.0.0.2") as honest:
            attacker.sendall(request)
            answer(attacker)
            honest.sendall(describe_configs([(_BROKER, "1", ["node.id"])]))
            assert b"node.id" in answer(honest)
        assert clock.read() - began < 2 * SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB


@pytest.mark.long  # batches that are produced: below
def test_lookups_by_time_in_compressed_batches_hold_nobody_up_and_take_little_memory(
    broker: LocalBroker,
) -> None:
    with connect(broker) as sock:
        sock.sendall(produce_request("attacked", swollen()))
        assert error_code(answer(sock), "attacked") == 0
    before = peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour:
        answered = _flood(broker, list_offsets_request("attacked", 1))
    assert {struct.unpack(">hqq", answer[-18:])[0:2] for answer in answered} == {(0, 1)}
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB


def test_produced_batches_that_open_to_much_hold_nobody_up(broker: LocalBroker) -> None:
    with Neighbour(broker, "honest") as neighbour:
        answered = _flood(broker, produce_request("attacked", swollen()))
    assert {error_code(answer, "attacked") for answer in answered} == {0}
    assert neighbour.slowest_s < SERVED_WITHIN_S


@pytest.mark.parametrize(
    ("count", "numbered", "request_max"),
    [
        pytest.param(9_500_000, False, 16_384, id="millions that are all the same"),
        pytest.param(200_000, True, MIB, id="a good batch"),
    ],
)
def test_records_without_keys_for_a_compacted_topic_cost_little_memory_and_a_short_answer(
    broker: LocalBroker, count: int, numbered: bool, request_max: int
) -> None:
    request = produce_request("compacted", keyless_batch(count, numbered), TAKES_ZSTD)
    assert len(request) < request_max
    before = peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour:
        answered = _flood(broker, request)
    assert {error_code(answer, "compacted") for answer in answered} == {_INVALID_RECORD}
    # The first thousand such records are named at most.
    assert max(map(len, answered)) < 200_000
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < 64 * MIB
