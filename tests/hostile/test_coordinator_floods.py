"""Clients that make groups, members and transactional ids without end: a broker keeps what it has room for, and serves all others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.hostile.batches import error_code, produce_request
from tests.hostile.floods import (
    COORDINATOR_NOT_AVAILABLE,
    FLOODS,
    GROUP_MAX_SIZE_REACHED,
    MIB,
    NONE,
    SERVED_WITHIN_S,
    Flood,
    answer,
    ask,
    code_behind_throttle,
    commit,
    connect,
    init,
    last_code,
    peak_bytes,
    records_in_flight,
    until_coordinators_serve,
)
from tests.hostile.neighbour import Neighbour
from tests.interop.clients import create_topic
from tests.oracle.batches import batch

_ROOM_BYTES = 16 * MIB
_GROWTH_MAX_BYTES = 128 * MIB
_REQUESTS = 16_000
# Each record in flight that is like none beside it takes about 100 bytes: so many groups need more than twice the room.
_RECORDS, _GROUPS = 2_000, 180


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker with little room for groups and transactional ids, and a topic for an honest client."""
    room = {"group_coordinator_max_bytes": _ROOM_BYTES, "transaction_coordinator_max_bytes": _ROOM_BYTES}
    with LocalBroker(tmp_path, **room) as broker:
        create_topic(broker.bootstrap_servers, "honest")
        with connect(broker) as sock:
            until_coordinators_serve(sock)
        yield broker


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(flood, id=name, marks=[] if name in ("members", "transactional ids") else pytest.mark.long)
        for name, flood in FLOODS.items()
    ],
)
def test_a_flood_is_refused_when_the_room_is_used_up_and_those_that_are_known_go_on(
    broker: LocalBroker, flood: Flood
) -> None:
    before = peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour, connect(broker) as sock:
        codes = flood.send(sock, _REQUESTS)
    assert set(codes) == {flood.taken, flood.refused}
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < _GROWTH_MAX_BYTES
    with connect(broker) as sock:
        assert ask(sock, commit("first"), last_code) == NONE
        assert ask(sock, init("first"), code_behind_throttle) == NONE
    until(lambda: f"{flood.setting} are in use" in broker.logs(), "a line says so")


@pytest.mark.long  # members and ids: above
def test_records_in_flight_are_refused_when_the_room_is_used_up_and_others_go_on(broker: LocalBroker) -> None:
    create_topic(broker.bootstrap_servers, "shared")
    with connect(broker) as sock:
        # A batch for each: batches are taken as a whole.
        request = produce_request("shared", bytes.fromhex(batch("record")))
        for _ in range(_RECORDS):
            sock.sendall(request)
            assert error_code(answer(sock), "shared") == NONE
    before = peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour:
        codes = records_in_flight(broker, "shared", _GROUPS)
    assert codes in ({NONE, GROUP_MAX_SIZE_REACHED}, {NONE, GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE})
    assert neighbour.slowest_s < SERVED_WITHIN_S
    assert peak_bytes(broker) - before < _GROWTH_MAX_BYTES
    with connect(broker) as sock:
        assert ask(sock, commit("first"), last_code) == NONE
    until(lambda: "group.coordinator.max.bytes are in use" in broker.logs(), "a line says so")
