"""The HTTP server below every page, over plain and encrypted sockets: who is refused reads why, and who never ends is ended. About 13 s."""

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from pylog_spark.web import server
from pylog_spark.web.handler import Handler
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import BODY_BYTES_MAX, DROPPED_BYTES_MAX, Content, HttpServer
from tests.harness import certificates
from tests.harness.waiting import until

Connect = Callable[[], socket.socket]


class Echo(Handler):
    """Answers with the length of the body; says in a header whether what is written is sent at once."""

    def answered(self) -> Content:
        at_once = bool(self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return Content("text/plain", f"{len(self.body())}".encode(), headers=(("At-Once", str(at_once)),))

    def refused(self, refusal: Refusal) -> Content:
        return Content("text/plain", refusal.sentence.encode())


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["plain", "encrypted"])
def connect(request: pytest.FixtureRequest, issued: certificates.Certificates) -> Iterator[Connect]:
    """Makes connections to a server that echoes lengths."""
    tls = None
    if request.param == "encrypted":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(issued.path("server.both.pem"))
        client = ssl.create_default_context(cafile=issued.path("ca.pem"))
    http = HttpServer("127.0.0.1", 0, lambda: Echo, tls, logging.getLogger("tests.web"))
    http.start("echo")

    def connected() -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", http.server_address[1]), timeout=60)
        return plain if tls is None else client.wrap_socket(plain, server_hostname="127.0.0.1")

    try:
        yield connected
    finally:
        http.close()


def answer(wire: socket.socket) -> bytes:
    """All that the server sends before it ends the connection."""
    read = b""
    while piece := wire.recv(65536):
        read += piece
    return read


def test_the_body_of_an_answer_does_not_wait_until_its_headers_are_acknowledged(connect: Connect) -> None:
    with connect() as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"At-Once: True\r\n" in answer(wire)


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (f"POST / HTTP/1.1\r\nContent-Length: {8 * BODY_BYTES_MAX}\r\n\r\n".encode(), 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n", 413),
        (b"GET /", 414),
    ],
)
def test_a_client_that_sends_all_before_it_reads_reads_why_it_is_refused(
    connect: Connect, begin: bytes, status: int
) -> None:
    """Else its system says "broken pipe", as it throws away what the server said when that closes a socket with unread bytes."""
    with connect() as wire:
        wire.sendall(begin + b"x" * (8 * BODY_BYTES_MAX))
        wire.sendall(b"x")
        assert answer(wire).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_refused_client_that_never_stops_sending_is_cut(connect: Connect) -> None:
    sent = 0
    with connect() as wire, suppress(ConnectionError, ssl.SSLError):
        wire.sendall(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        # What the systems of both hold in between is not dropped yet.
        while sent < 4 * DROPPED_BYTES_MAX:
            wire.sendall(b"x" * BODY_BYTES_MAX)
            sent += BODY_BYTES_MAX
    assert DROPPED_BYTES_MAX <= sent + BODY_BYTES_MAX < 4 * DROPPED_BYTES_MAX


def test_a_refused_client_that_stands_still_is_ended(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DROP_S", 0.2)
    with connect() as wire:
        wire.sendall(b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        assert answer(wire).startswith(b"HTTP/1.1 413 ")
        # The server half-closed; a client that sends on finds out when it has closed.
        until(lambda: is_closed(wire), "the server closes the connection")


def test_a_request_that_never_ends_is_ended_however_it_is_encrypted(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.5)
    monkeypatch.setattr(server, "REQUEST_S", 0.5)
    for begin in (b"GET /", b"POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"):
        with connect() as wire:
            wire.sendall(begin)
            until(lambda wire=wire: is_closed(wire), "the server closes the connection")


def test_connections_go_on_after_requests_that_were_read(connect: Connect) -> None:
    with connect() as wire:
        for length in (0, 5, BODY_BYTES_MAX):
            wire.sendall(f"POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode() + b"x" * length)
            read = b""
            while not read.endswith(f"\r\n\r\n{length}".encode()):
                read += wire.recv(65536)
            assert read.startswith(b"HTTP/1.1 200 ")


def is_closed(wire: socket.socket) -> bool:
    """Whether one byte more reaches nobody."""
    try:
        wire.sendall(b"x")
    except OSError:
        return True
    return False
