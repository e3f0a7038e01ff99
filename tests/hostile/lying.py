"""A lying broker: a real one behind a proxy that gives its answers to a script, which gives back the client's reply.

A script is a function of what was asked and the true answer (both without their size fields). What it gives back:

===================  ==========================================================
bytes                sent at once; `answer` itself is the truth
`Drip`               sent byte by byte, with a pause before each
`SILENCE`            nothing, now and for ever, on this connection
`HANG_UP`            the connection is closed
===================  ==========================================================

The broker has done what it was asked in every case. `emptied` and `refused` make answers to Fetch from true ones, from version 12 on
(the flexible ones), which is all that pylog's client sends to a broker of its own; written from Kafka's message definitions.

Scripts are called from one thread for each connection.
"""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pylog_spark.testing import LocalBroker
from tests.peers.probe import read_exactly

PRODUCE, FETCH = 0, 1
NOT_LEADER_OR_FOLLOWER = 6
_BY_ID_FROM = 13
_HEADER = struct.Struct(">hhi")


@dataclass(frozen=True)
class Asked:
    """A request: its kind and version, and how many of that kind came before it on all connections."""

    api: int
    version: int
    number: int


@dataclass(frozen=True)
class Drip:
    """An answer that comes byte by byte."""

    answer: bytes
    pause_s: float


class _Manner:
    """What is no answer."""


SILENCE, HANG_UP = _Manner(), _Manner()

Reply = bytes | Drip | _Manner
Script = Callable[[Asked, bytes], Reply]


def truth(_: Asked, answer: bytes) -> Reply:
    """The script of an honest broker."""
    return answer


class LyingBroker:
    """Listens in front of a broker and answers by `script`, which may be exchanged at any time.

    Attributes
    ----------
    port : int
        Where it listens.
    counts : Counter
        Requests by kind.
    """

    def __init__(self) -> None:
        self.script: Script = truth
        self.counts: Counter[int] = Counter()
        self._target: tuple[str, int] = ("", 0)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]

    @property
    def servers(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def aim(self, host: str, port: int) -> None:
        """Stand in front of the broker that listens there."""
        self._target = (host, port)

    def __enter__(self) -> "LyingBroker":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        _close(*self._sockets)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._target)
                self._sockets += [client, broker]
                asked: dict[int, Asked] = {}
                for carry in (self._up, self._down):
                    threading.Thread(target=self._carry, args=(carry, client, broker, asked), daemon=True).start()

    def _carry(
        self,
        way: Callable[[socket.socket, socket.socket, dict[int, Asked]], None],
        client: socket.socket,
        broker: socket.socket,
        asked: dict[int, Asked],
    ) -> None:
        with contextlib.suppress(OSError):
            way(client, broker, asked)
        _close(client, broker)

    def _up(self, client: socket.socket, broker: socket.socket, asked: dict[int, Asked]) -> None:
        while True:
            request = _frame(client)
            api, version, correlation_id = _HEADER.unpack_from(request)
            with self._lock:
                asked[correlation_id] = Asked(api, version, self.counts[api])
                self.counts[api] += 1
            broker.sendall(_framed(request))

    def _down(self, client: socket.socket, broker: socket.socket, asked: dict[int, Asked]) -> None:
        silent = False
        while True:
            answer = _frame(broker)
            reply = self.script(asked.pop(int.from_bytes(answer[:4], "big")), answer)
            silent = silent or reply is SILENCE
            if reply is HANG_UP:
                return
            if not silent:
                self._reply(client, reply)

    def _reply(self, client: socket.socket, reply: Reply) -> None:
        if isinstance(reply, bytes):
            client.sendall(_framed(reply))
        elif isinstance(reply, Drip):
            for byte in _framed(reply.answer):
                if self._over.wait(reply.pause_s):
                    return
                client.sendall(bytes([byte]))


@contextmanager
def lying_broker(folder: Path) -> Iterator[LyingBroker]:
    """A broker of pylog whose advertised address is the proxy's."""
    with (
        LyingBroker() as lying,
        LocalBroker(folder, local_reads_enable=False, advertised_listeners=f"PLAINTEXT://{lying.servers}") as broker,
    ):
        lying.aim(broker.host, broker.port)
        yield lying


def emptied(asked: Asked, answer: bytes) -> bytes:
    """The answer to a fetch without its records: error 0, and the high watermark where it is."""
    return _Fetched(answer, asked.version).forged(records=b"\x01")


def refused(asked: Asked, answer: bytes, code: int) -> bytes:
    """The answer to a fetch with an error instead of records."""
    return _Fetched(answer, asked.version).forged(records=b"\x01", code=code)


class _Fetched:
    """An answer to Fetch, copied piece by piece."""

    def __init__(self, answer: bytes, version: int) -> None:
        assert version >= 12, f"Fetch {version} is not known here"
        self._answer, self._version, self._at = answer, version, 0
        self._made = bytearray()

    def forged(self, records: bytes, code: int | None = None) -> bytes:
        """With other `records` (as encoded), and another error `code` in every partition."""
        self._copy(4)  # correlation id
        self._tags()
        self._copy(4 + 2 + 4)  # throttle time, error, session
        for _ in range(self._count()):
            self._copy(16 if self._version >= _BY_ID_FROM else self._peeked_length())
            for _ in range(self._count()):
                self._partition(records, code)
            self._tags()
        self._made += self._answer[self._at :]
        return bytes(self._made)

    def _partition(self, records: bytes, code: int | None) -> None:
        self._copy(4)
        self._replace(2, None if code is None else struct.pack(">h", code))
        self._copy(8 + 8 + 8)  # high watermark, last stable offset, log start
        for _ in range(self._count()):  # aborted transactions
            self._copy(8 + 8)
            self._tags()
        self._copy(4)  # preferred replica
        length, size = self._uvarint(self._at)
        self._replace(size + max(length - 1, 0), records)
        self._tags()

    def _copy(self, count: int) -> None:
        self._replace(count, None)

    def _replace(self, count: int, by: bytes | None) -> None:
        self._made += self._answer[self._at : self._at + count] if by is None else by
        self._at += count

    def _count(self) -> int:
        """The length of an array, copied; of a null one 0."""
        length, size = self._uvarint(self._at)
        self._copy(size)
        return max(length - 1, 0)

    def _peeked_length(self) -> int:
        """The bytes of a string with its length."""
        length, size = self._uvarint(self._at)
        return size + max(length - 1, 0)

    def _tags(self) -> None:
        count, size = self._uvarint(self._at)
        self._copy(size)
        for _ in range(count):
            _, size = self._uvarint(self._at)
            self._copy(size)
            length, size = self._uvarint(self._at)
            self._copy(size + length)

    def _uvarint(self, at: int) -> tuple[int, int]:
        """The number there, and its bytes."""
        value = shift = size = 0
        while True:
            byte = self._answer[at + size]
            value |= (byte & 0x7F) << shift
            shift, size = shift + 7, size + 1
            if byte < 0x80:
                return value, size


def _frame(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    return read_exactly(sock, size)


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _close(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
