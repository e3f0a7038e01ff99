"""A hand-made Kafka client of a few lines, so that the broker's bytes are checked without any of our own code.

Only the old, non-flexible versions are spoken here; the layouts are written from Kafka's message definitions.
"""

import os
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def text(value: str | None) -> bytes:
    """A (nullable) string."""
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def array(items: list[bytes]) -> bytes:
    """An array of already encoded items."""
    return struct.pack(">i", len(items)) + b"".join(items)


class Answer:
    """A cursor over the bytes of an answer."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str):
        """One value of a `struct` layout."""
        (value,) = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return value

    def text(self) -> str | None:
        """A (nullable) string."""
        length = self.take("h")
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at].decode()

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self.data) - self.at


class Connection:
    """One connection; requests are answered in order."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=60)
        self.sent = 0

    def send(self, api: int, version: int, body: bytes) -> int:
        """Send a request with a version 1 header; returns its correlation id."""
        self.sent += 1
        header = struct.pack(">hhi", api, version, self.sent) + text("raw")
        frame = header + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self.sent

    def is_taken(self) -> bool:
        """Whether the broker has taken all that was sent: nothing waits for it at its socket, as Linux shows it."""
        here, there = self.socket.getsockname()[1], self.socket.getpeername()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            local, remote, _, queues = line.split()[1:5]
            if local.endswith(f":{there:04X}") and remote.endswith(f":{here:04X}"):
                return int(queues.partition(":")[2], 16) == 0
        return False

    def receive(self) -> tuple[int, Answer]:
        """The next answer: correlation id and a cursor after the header."""
        (length,) = struct.unpack(">i", self.exactly(4))
        answer = Answer(self.exactly(length))
        return answer.take("i"), answer

    def ask(self, api: int, version: int, body: bytes) -> Answer:
        """Send and wait; the answer must be to this request."""
        wanted = self.send(api, version, body)
        correlation_id, answer = self.receive()
        assert correlation_id == wanted
        return answer

    def exactly(self, count: int) -> bytes:
        """Exactly `count` bytes; EOFError when the broker closes first."""
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError(f"closed after {len(data)} of {count} bytes")
            data += more
        return data

    def closed(self) -> bool:
        """Whether the broker closed the connection (waits for it)."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@contextmanager
def room_for(count: int) -> Iterator[None]:
    """Let this process have so many file descriptors more than now, whatever else it has open, for as long as the block lasts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(map(int, os.listdir("/proc/self/fd"))) + count + 100
    # None that is higher is lowered: what has such a number already would be refused more.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, wanted)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def connect(bootstrap_servers: str) -> Iterator[Connection]:
    """A connection that is closed at the end."""
    host, _, port = bootstrap_servers.rpartition(":")
    connection = Connection(host, int(port))
    try:
        yield connection
    finally:
        connection.socket.close()
