"""Clients that make groups, members and transactional ids without end: a broker keeps what it has room for, and serves all others."""

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import until
from tests.hostile.neighbour import Neighbour
from tests.hostile.requests import framed
from tests.interop.clients import create_topic
from tests.peers.probe import read_exactly

_MIB = 1024 * 1024
_PATIENCE_S = 120.0
_SERVED_WITHIN_S = 1.0
_ROOM_BYTES = 16 * _MIB
_GROWTH_MAX_BYTES = 128 * _MIB
_NONE, _INVALID_COMMIT_OFFSET_SIZE, _POLICY_VIOLATION, _MEMBER_ID_REQUIRED, _GROUP_MAX_SIZE_REACHED = 0, 28, 44, 79, 81
_REQUESTS = 16_000
_TOGETHER = 200


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker with little room for groups and transactional ids, and a topic for an honest client."""
    room = {"group_coordinator_max_bytes": _ROOM_BYTES, "transaction_coordinator_max_bytes": _ROOM_BYTES}
    with LocalBroker(tmp_path, **room) as broker:
        create_topic(broker.bootstrap_servers, "honest")
        with _connect(broker) as sock:
            for kind in (0, 1):
                until(lambda kind=kind: _find_coordinator(sock, kind) == _NONE, "the coordinator is there")
            until(lambda: _ask(sock, _commit("first"), _last_code) == _NONE, "it has loaded its groups")
            until(lambda: _ask(sock, _init("first"), _code_behind_throttle) == _NONE, "it has loaded its ids")
        yield broker


def _connect(broker: LocalBroker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=_PATIENCE_S)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _answer(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def _find_coordinator(sock: socket.socket, kind: int) -> int:
    """FindCoordinator v1 for a group (0) or a transactional id (1): its error code."""
    sock.sendall(framed(struct.pack(">hhih", 10, 1, 1, -1) + _text("first") + struct.pack(">b", kind)))
    return _code_behind_throttle(_answer(sock))


def _commit(group: str) -> bytes:
    """OffsetCommit v2 of partition 0 of "honest"; the error code is the last thing in the answer."""
    partitions = struct.pack(">iiq", 1, 0, 1) + _text("m" * 4_000)
    topics = struct.pack(">i", 1) + _text("honest") + partitions
    body = _text(group) + struct.pack(">i", -1) + _text("") + struct.pack(">q", -1) + topics
    return framed(struct.pack(">hhih", 8, 2, 1, -1) + body)


def _join(group: str) -> bytes:
    """JoinGroup v4 of somebody who never comes back with the id that it gets."""
    protocols = struct.pack(">i", 1) + _text("range") + struct.pack(">i", 0)
    timeouts = struct.pack(">ii", 1_800_000, 1_800_000)
    body = _text(group) + timeouts + _text("") + _text("consumer") + protocols
    return framed(struct.pack(">hhi", 11, 4, 1) + _text("c" * 1_000) + body)


def _init(name: str) -> bytes:
    """InitProducerId v0 of a transactional id with a long name."""
    return framed(struct.pack(">hhih", 22, 0, 1, -1) + _text(name.ljust(1_000, "t")) + struct.pack(">i", 60_000))


def _last_code(answer: bytes) -> int:
    return int(struct.unpack(">h", answer[-2:])[0])


def _code_behind_throttle(answer: bytes) -> int:
    """Behind the correlation id and the throttle time."""
    return int(struct.unpack_from(">h", answer, 8)[0])


@dataclass(frozen=True)
class Flood:
    """Requests that each leave something behind, and what becomes of them."""

    make: Callable[[str], bytes]
    code: Callable[[bytes], int]
    taken: int
    refused: int
    setting: str


_FLOODS = {
    "offsets": Flood(_commit, _last_code, _NONE, _INVALID_COMMIT_OFFSET_SIZE, "group.coordinator.max.bytes"),
    "members": Flood(
        _join, _code_behind_throttle, _MEMBER_ID_REQUIRED, _GROUP_MAX_SIZE_REACHED, "group.coordinator.max.bytes"
    ),
    "transactional ids": Flood(
        _init, _code_behind_throttle, _NONE, _POLICY_VIOLATION, "transaction.coordinator.max.bytes"
    ),
}


def _ask(sock: socket.socket, request: bytes, code: Callable[[bytes], int]) -> int:
    sock.sendall(request)
    return code(_answer(sock))


def _peak_bytes(broker: LocalBroker) -> int:
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return peak * 1024


def _send(broker: LocalBroker, flood: Flood) -> set[int]:
    """Ask for one new thing after the other; the error codes that came back."""
    codes = set()
    with _connect(broker) as sock:
        for first in range(0, _REQUESTS, _TOGETHER):
            sock.sendall(b"".join(flood.make(f"flood-{number}") for number in range(first, first + _TOGETHER)))
            codes |= {flood.code(_answer(sock)) for _ in range(_TOGETHER)}
    return codes


@pytest.mark.parametrize("flood", [pytest.param(flood, id=name) for name, flood in _FLOODS.items()])
def test_a_flood_is_refused_when_the_room_is_used_up_and_those_that_are_known_go_on(
    broker: LocalBroker, flood: Flood
) -> None:
    before = _peak_bytes(broker)
    with Neighbour(broker, "honest") as neighbour:
        codes = _send(broker, flood)
    assert codes == {flood.taken, flood.refused}
    assert neighbour.slowest_s < _SERVED_WITHIN_S
    assert _peak_bytes(broker) - before < _GROWTH_MAX_BYTES
    with _connect(broker) as sock:
        assert _ask(sock, _commit("first"), _last_code) == _NONE
        assert _ask(sock, _init("first"), _code_behind_throttle) == _NONE
    assert f"{flood.setting} are in use" in broker.logs()
