"""What floods send, and what they look at in the answers. The sender's address is that of the socket: `connect` chooses it."""

import contextlib
import json
import socket
import struct
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pylog_spark._native import RawConnection
from pylog_spark.testing import LocalBroker
from tests.harness.waiting import brief, until
from tests.hostile.neighbour import Address
from tests.hostile.requests import framed
from tests.peers.probe import read_exactly

MIB = 1024 * 1024
TIMEOUT_S = 120.0
SERVED_WITHIN_S = 1.0
#: By the clock on the wall, which also counts what a busy machine does for others; who is held up waits for much longer.
ANSWERED_WITHIN_S = 10.0
NONE, INVALID_COMMIT_OFFSET_SIZE, POLICY_VIOLATION, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED = 0, 28, 44, 79, 81
COORDINATOR_NOT_AVAILABLE, SHARE_SESSION_LIMIT_REACHED = 15, 133
_RELEASE = 2


def connect(broker: LocalBroker | Address, from_host: str = "127.0.0.1") -> socket.socket:
    """A connection from that address."""
    return socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S, source_address=(from_host, 0))


def answer(sock: socket.socket) -> bytes:
    """The next answer, without its size."""
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def peak_bytes(broker: LocalBroker | Address) -> int:
    """The most memory that the broker has had so far."""
    peak = peak_of(broker.pid)
    assert peak > 0, "the broker is gone"
    return peak


def peak_of(pid: int) -> int:
    """The most memory in bytes that a process has had so far; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # A process that has ended and was not reaped has no such line.
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def send_what_is_taken(sock: socket.socket, data: bytes) -> None:
    """Send as much as the broker reads; it stops when it has no room."""
    with brief(sock, 0.2), contextlib.suppress(TimeoutError, ConnectionError):
        sock.sendall(data)


def list_offsets_request(topic: str, timestamp_ms: int) -> bytes:
    """ListOffsets v1 of partition 0."""
    return framed(struct.pack(">hhihii", 2, 1, 1, -1, -1, 1) + text(topic) + struct.pack(">iiq", 1, 0, timestamp_ms))


def fetch_request(topic: str, count: int) -> bytes:
    """Fetch v4 of partition 0, named `count` times, that waits for up to ten minutes."""
    partitions = struct.pack(">iqi", 0, 0, 1) * count
    wait = struct.pack(">iiiib", -1, 600_000, 1, 1_000, 0)
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + wait + _one_topic(topic, count, partitions))


def fetch_of_many(topic: str, count: int) -> bytes:
    """Fetch v4 of `count` partitions, of which the first is there."""
    partitions = b"".join(struct.pack(">iqi", number, 0, 1) for number in range(count))
    wait = struct.pack(">iiiib", -1, 0, 1, 1_000, 0)
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + wait + _one_topic(topic, count, partitions))


def text(value: str) -> bytes:
    """A string."""
    return struct.pack(">h", len(value)) + value.encode()


def _one_topic(topic: str, count: int, partitions: bytes) -> bytes:
    """An array of one topic with so many partitions."""
    return struct.pack(">i", 1) + text(topic) + struct.pack(">i", count) + partitions


def offset_fetch_of_many(topic: str, count: int) -> bytes:
    """OffsetFetch v1 of `count` partitions, none of which has an offset."""
    partitions = struct.pack(f">{count}i", *range(count))
    return framed(struct.pack(">hhih", 9, 1, 1, -1) + text("nobody") + _one_topic(topic, count, partitions))


def metadata_of_many(count: int) -> bytes:
    """Metadata v4 of `count` topics that are not there."""
    names = b"".join(text(f"none-{number}") for number in range(count))
    return framed(struct.pack(">hhih", 3, 4, 1, -1) + struct.pack(">i", count) + names + b"\0")


def commit_of_many(topic: str, count: int) -> bytes:
    """OffsetCommit v2 of `count` partitions, of which the first is there."""
    partitions = b"".join(struct.pack(">iq", number, 1) + text("") for number in range(count))
    who = text("many") + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
    return framed(struct.pack(">hhih", 8, 2, 1, -1) + who + _one_topic(topic, count, partitions))


def produce_of_many(topic: str, count: int) -> bytes:
    """Produce v3 of an empty batch to each of `count` partitions, none of which is there."""
    partitions = b"".join(struct.pack(">ii", 1_000 + number, 61) + bytes(61) for number in range(count))
    limits = struct.pack(">hhi", -1, 1, 30_000)
    return framed(struct.pack(">hhih", 0, 3, 1, -1) + limits + _one_topic(topic, count, partitions))


def describe_configs(resources: list[tuple[int, str, list[str] | None]]) -> bytes:
    """DescribeConfigs v1 with synonyms; (type, name, keys) of each."""
    body = struct.pack(">i", len(resources))
    for kind, name, keys in resources:
        named = struct.pack(">i", -1 if keys is None else len(keys)) + b"".join(text(key) for key in keys or ())
        body += struct.pack(">b", kind) + text(name) + named
    return framed(struct.pack(">hhih", 32, 1, 1, -1) + body + b"\1")


def alter_configs(topics: int) -> bytes:
    """AlterConfigs v0 of so many topics that are not there."""
    named = b"".join(struct.pack(">b", 2) + text(f"none-{number}") + struct.pack(">i", 0) for number in range(topics))
    return framed(struct.pack(">hhih", 33, 0, 1, -1) + struct.pack(">i", topics) + named + b"\0")


def find_coordinator(sock: socket.socket, kind: int) -> int:
    """FindCoordinator v1 for a group (0) or a transactional id (1): its error code."""
    request = framed(struct.pack(">hhih", 10, 1, 1, -1) + text("first") + struct.pack(">b", kind))
    return ask(sock, request, code_behind_throttle)


def ask(sock: socket.socket, request: bytes, code: Callable[[bytes], int]) -> int:
    """The error code of the answer."""
    sock.sendall(request)
    return code(answer(sock))


def until_coordinators_serve(sock: socket.socket) -> None:
    """Wait for those of groups and of transactional ids; a group "first" and an id "first" are known then."""
    for kind in (0, 1):
        until(lambda kind=kind: find_coordinator(sock, kind) == NONE, "the coordinator is there")
    until(lambda: ask(sock, commit("first"), last_code) == NONE, "it has loaded its groups")
    until(lambda: ask(sock, init("first"), code_behind_throttle) == NONE, "it has loaded its ids")


def commit(group: str) -> bytes:
    """OffsetCommit v2 of partition 0 of "honest"; the error code is the last thing in the answer."""
    topics = _one_topic("honest", 1, struct.pack(">iq", 0, 1) + text("m" * 4_000))
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1) + topics
    return framed(struct.pack(">hhih", 8, 2, 1, -1) + body)


def join(group: str) -> bytes:
    """JoinGroup v4 of a client that never comes back with the id that it gets."""
    protocols = struct.pack(">i", 1) + text("range") + struct.pack(">i", 0)
    timeouts = struct.pack(">ii", 1_800_000, 1_800_000)
    body = text(group) + timeouts + text("") + text("consumer") + protocols
    return framed(struct.pack(">hhi", 11, 4, 1) + text("c" * 1_000) + body)


def init(name: str) -> bytes:
    """InitProducerId v0 of a transactional id with a long name."""
    return framed(struct.pack(">hhih", 22, 0, 1, -1) + text(name.ljust(1_000, "t")) + struct.pack(">i", 60_000))


def compact(value: str) -> bytes:
    """A string of a flexible version, shorter than 16383 bytes."""
    length = len(value) + 1
    size = bytes([length]) if length < 0x80 else bytes([length & 0x7F | 0x80, length >> 7])
    return size + value.encode()


def _flexible(key: int, version: int, body: bytes) -> bytes:
    return framed(struct.pack(">hhih", key, version, 1, -1) + b"\0" + body + b"\0")


def share_heartbeat(group: str) -> bytes:
    """ShareGroupHeartbeat v1 of the first member of a group, which stands in a rack with a long name."""
    topics = b"\x02" + compact("honest")
    return _flexible(
        76, 1, compact(f"share-{group}") + compact("member") + struct.pack(">i", 0) + compact("r" * 1_000) + topics
    )


def share_fetch(member: str) -> bytes:
    """ShareFetch v2 that opens a session without partitions."""
    limits = struct.pack(">iiiiiibb", 0, 0, 1, 1_000, 1, 1, 0, 0)
    return _flexible(78, 2, compact("group") + compact(member) + limits + b"\x01\x01")


def last_code(answered: bytes) -> int:
    """The last thing in the answer."""
    return int(struct.unpack(">h", answered[-2:])[0])


def code_behind_throttle(answered: bytes) -> int:
    """Behind the correlation id and the throttle time."""
    return int(struct.unpack_from(">h", answered, 8)[0])


def code_behind_tags(answered: bytes) -> int:
    """As `code_behind_throttle`, of a flexible version."""
    return int(struct.unpack_from(">h", answered, 9)[0])


def records_in_flight(broker: LocalBroker, topic: str, groups: int) -> set[int]:
    """Share groups that each take all records of the topic and give back every second one, so that each has to be remembered by itself;
    the error codes that came back.
    """
    raw = RawConnection(broker.host, broker.port)

    def ask(api: str, version: int, **fields: Any) -> Any:
        return json.loads(raw.call(api, version, json.dumps(fields)))

    topic_id = ask("Metadata", 12, topics=[{"topic_id": str(uuid.UUID(int=0)), "name": topic}])["topics"][0]["topic_id"]
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
    start = [{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    codes = set()
    for number in range(groups):
        who = {"group_id": f"in-flight-{number}", "member_id": "member"}
        moved = ask("AlterShareGroupOffsets", 0, group_id=who["group_id"], topics=start)
        codes.add(moved["error_code"])
        taken = range(0)
        for epoch in range(4):
            topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}]
            found = ask("ShareFetch", 2, **who, share_session_epoch=epoch, **limits, topics=topics)
            assert found["error_code"] == NONE
            runs = [
                run
                for response in found["responses"]
                for each in response["partitions"]
                for run in each["acquired_records"]
            ]
            taken = range(runs[-1]["last_offset"] + 1) if runs else taken
        said = [{"first_offset": at, "last_offset": at, "acknowledge_types": [_RELEASE]} for at in taken[::2]]
        topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": said}]}]
        answered = (
            ask("ShareAcknowledge", 2, **who, share_session_epoch=4, topics=topics) if said else {"responses": []}
        )
        codes |= {each["error_code"] for answer in answered["responses"] for each in answer["partitions"]}
    raw.close()
    return codes


@dataclass(frozen=True)
class Flood:
    """Requests that each leave something behind, and what becomes of them."""

    make: Callable[[str], bytes]
    code: Callable[[bytes], int]
    taken: int
    refused: int
    setting: str

    def send(self, sock: socket.socket, requests: int, together: int = 200, first: int = 0) -> Counter[int]:
        """Ask for one new thing after the other, numbered from `first` on; how often each error code came back."""
        codes: Counter[int] = Counter()
        for begin in range(first, first + requests, together):
            sock.sendall(b"".join(self.make(f"flood-{number}") for number in range(begin, begin + together)))
            codes.update(self.code(answer(sock)) for _ in range(together))
        return codes


FLOODS = {
    "offsets": Flood(commit, last_code, NONE, INVALID_COMMIT_OFFSET_SIZE, "group.coordinator.max.bytes"),
    "members": Flood(
        join, code_behind_throttle, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, "group.coordinator.max.bytes"
    ),
    "transactional ids": Flood(init, code_behind_throttle, NONE, POLICY_VIOLATION, "transaction.coordinator.max.bytes"),
    "share members": Flood(
        share_heartbeat, code_behind_tags, NONE, GROUP_MAX_SIZE_REACHED, "group.coordinator.max.bytes"
    ),
    "share sessions": Flood(
        share_fetch, code_behind_tags, NONE, SHARE_SESSION_LIMIT_REACHED, "group.share.max.share.sessions"
    ),
}
