"""What floods send, and what they look at in the answers. Whoever sends it is a socket's matter: `connect` chooses the address."""

import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pylog_spark.testing import LocalBroker
from tests.hostile.requests import framed
from tests.peers.probe import read_exactly

MIB = 1024 * 1024
PATIENCE_S = 120.0
SERVED_WITHIN_S = 1.0
NONE, INVALID_COMMIT_OFFSET_SIZE, POLICY_VIOLATION, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED = 0, 28, 44, 79, 81


def connect(broker: LocalBroker, from_host: str = "127.0.0.1") -> socket.socket:
    """A connection from that address."""
    return socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S, source_address=(from_host, 0))


def answer(sock: socket.socket) -> bytes:
    """The next answer, without its size."""
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def peak_bytes(broker: LocalBroker) -> int:
    """The most memory that the broker has had so far."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return peak * 1024


def send_what_is_taken(sock: socket.socket, data: bytes) -> None:
    """Send as much as the broker reads; it stops when it has no room."""
    sock.settimeout(0.2)
    with contextlib.suppress(TimeoutError, ConnectionError):
        sock.sendall(data)
    sock.settimeout(PATIENCE_S)


def list_offsets_request(topic: str, timestamp_ms: int) -> bytes:
    """ListOffsets v1 of partition 0."""
    return framed(struct.pack(">hhihii", 2, 1, 1, -1, -1, 1) + text(topic) + struct.pack(">iiq", 1, 0, timestamp_ms))


def fetch_request(topic: str, count: int) -> bytes:
    """Fetch v4 of partition 0, named `count` times, that waits for up to ten minutes."""
    partitions = struct.pack(">i", count) + struct.pack(">iqi", 0, 0, 1) * count
    wait = struct.pack(">iiiib", -1, 600_000, 1, 1_000, 0)
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + wait + struct.pack(">i", 1) + text(topic) + partitions)


def fetch_of_many(topic: str, count: int) -> bytes:
    """Fetch v4 of `count` partitions, of which the first is there."""
    partitions = b"".join(struct.pack(">iqi", number, 0, 1) for number in range(count))
    wait = struct.pack(">iiiib", -1, 0, 1, 1_000, 0)
    body = wait + struct.pack(">i", 1) + text(topic) + struct.pack(">i", count) + partitions
    return framed(struct.pack(">hhih", 1, 4, 1, -1) + body)


def text(value: str) -> bytes:
    """A string."""
    return struct.pack(">h", len(value)) + value.encode()


def offset_fetch_of_many(topic: str, count: int) -> bytes:
    """OffsetFetch v1 of `count` partitions, none of which has an offset."""
    asked = text(topic) + struct.pack(f">i{count}i", count, *range(count))
    return framed(struct.pack(">hhih", 9, 1, 1, -1) + text("nobody") + struct.pack(">i", 1) + asked)


def metadata_of_many(count: int) -> bytes:
    """Metadata v4 of `count` topics that are not there."""
    names = b"".join(text(f"none-{number}") for number in range(count))
    return framed(struct.pack(">hhih", 3, 4, 1, -1) + struct.pack(">i", count) + names + b"\0")


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
    sock.sendall(framed(struct.pack(">hhih", 10, 1, 1, -1) + text("first") + struct.pack(">b", kind)))
    return code_behind_throttle(answer(sock))


def commit(group: str) -> bytes:
    """OffsetCommit v2 of partition 0 of "honest"; the error code is the last thing in the answer."""
    partitions = struct.pack(">iiq", 1, 0, 1) + text("m" * 4_000)
    topics = struct.pack(">i", 1) + text("honest") + partitions
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1) + topics
    return framed(struct.pack(">hhih", 8, 2, 1, -1) + body)


def join(group: str) -> bytes:
    """JoinGroup v4 of somebody who never comes back with the id that it gets."""
    protocols = struct.pack(">i", 1) + text("range") + struct.pack(">i", 0)
    timeouts = struct.pack(">ii", 1_800_000, 1_800_000)
    body = text(group) + timeouts + text("") + text("consumer") + protocols
    return framed(struct.pack(">hhi", 11, 4, 1) + text("c" * 1_000) + body)


def init(name: str) -> bytes:
    """InitProducerId v0 of a transactional id with a long name."""
    return framed(struct.pack(">hhih", 22, 0, 1, -1) + text(name.ljust(1_000, "t")) + struct.pack(">i", 60_000))


def last_code(answered: bytes) -> int:
    """The last thing in the answer."""
    return int(struct.unpack(">h", answered[-2:])[0])


def code_behind_throttle(answered: bytes) -> int:
    """Behind the correlation id and the throttle time."""
    return int(struct.unpack_from(">h", answered, 8)[0])


@dataclass(frozen=True)
class Flood:
    """Requests that each leave something behind, and what becomes of them."""

    make: Callable[[str], bytes]
    code: Callable[[bytes], int]
    taken: int
    refused: int
    setting: str

    def send(self, sock: socket.socket, requests: int, together: int = 200) -> set[int]:
        """Ask for one new thing after the other; the error codes that came back."""
        codes = set()
        for first in range(0, requests, together):
            sock.sendall(b"".join(self.make(f"flood-{number}") for number in range(first, first + together)))
            codes |= {self.code(answer(sock)) for _ in range(together)}
        return codes


FLOODS = {
    "offsets": Flood(commit, last_code, NONE, INVALID_COMMIT_OFFSET_SIZE, "group.coordinator.max.bytes"),
    "members": Flood(
        join, code_behind_throttle, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, "group.coordinator.max.bytes"
    ),
    "transactional ids": Flood(init, code_behind_throttle, NONE, POLICY_VIOLATION, "transaction.coordinator.max.bytes"),
}
