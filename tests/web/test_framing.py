"""Where a request ends is never a matter of opinion: what two programs could read differently is refused, and the connection with it.

Raw bytes against one server, since no client of good will sends them.
"""

import logging
import socket
from collections.abc import Iterator

import pytest

from pylog_spark.web.framing import CHUNK_LINE_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX
from pylog_spark.web.handler import Handler
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import BODY_BYTES_MAX, Content, HttpServer

HEAD = b"POST /first HTTP/1.1\r\nHost: x\r\n"
#: Read as a request of its own by a server that does not see the body that it stands in.
SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Echo(Handler):
    """Asks for a login under /login before it reads a body; answers with the body's length."""

    seen: list[str] = []

    def answered(self) -> Content:
        self.seen.append(self.path)
        if self.path == "/login":
            raise Refusal(401, 401, "Log in.")
        if self.path == "/fails":
            raise ValueError("a mistake of ours")
        if self.path == "/unread":
            return Content("text/plain", b"unread")
        body = self.body()
        return Content("text/plain", b"%d %s" % (len(body), body[:20]))

    def refused(self, refusal: Refusal) -> Content:
        return Content("text/plain", refusal.sentence.encode())


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    http = HttpServer("127.0.0.1", 0, lambda: Echo, None, logging.getLogger("tests.web"))
    http.start("echo")
    try:
        yield http
    finally:
        http.close()


@pytest.fixture(autouse=True)
def seen() -> list[str]:
    """The paths that were asked for."""
    Echo.seen.clear()
    return Echo.seen


def answers(server: HttpServer, sent: bytes) -> bytes:
    """All that the server says until it ends the connection."""
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30) as wire:
        wire.sendall(sent)
        read = b""
        while piece := wire.recv(65536):
            read += piece
        return read


def chunked(*lines: bytes) -> bytes:
    """A request whose body comes in chunks."""
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"\r\n".join(lines)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HEAD + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n", id="two lengths"),
        pytest.param(HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", id="a length twice"),
        pytest.param(HEAD + b"Content-Length: 5, 5\r\n\r\n", id="a list of lengths"),
        pytest.param(HEAD + b"Content-Length:\r\n\r\n", id="an empty length"),
        pytest.param(HEAD + b"Content-Length: +5\r\n\r\n", id="a signed length"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(HEAD + b"Content-Length: 0x5\r\n\r\n", id="a hexadecimal length"),
        pytest.param(HEAD + b"Content-Length: 5_0\r\n\r\n", id="a length with an underscore"),
        pytest.param(HEAD + "Content-Length: \u00b2\r\n\r\n".encode("latin-1"), id="a length of other digits"),
        pytest.param(HEAD + b"Content-Length : 52\r\n\r\n", id="a blank behind Content-Length"),
        pytest.param(HEAD + b"Transfer-Encoding : chunked\r\n\r\n", id="a blank behind Transfer-Encoding"),
        pytest.param(HEAD + b"Transfer-Encoding:\r\n\r\n", id="an empty Transfer-Encoding"),
        pytest.param(HEAD + b"Transfer-Encoding: identity\r\n\r\n", id="an unknown coding"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", id="two codings"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", id="chunked twice"),
        pytest.param(HEAD + b"Transfer-Encoding: xchunked\r\n\r\n", id="nearly chunked"),
        pytest.param(HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n", id="a control character"),
        pytest.param(HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", id="a length and chunks"),
        pytest.param(b"POST /first HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", id="chunks in HTTP/1.0"),
        pytest.param(HEAD + b"nonsense\r\nContent-Length: 52\r\n\r\n", id="a line without a colon"),
        pytest.param(HEAD + b": x\r\nContent-Length: 52\r\n\r\n", id="a header without a name"),
        pytest.param(b"POST /first HTTP/1.1\r\n Host: x\r\nContent-Length: 52\r\n\r\n", id="a leading blank"),
        pytest.param(HEAD + b"A: b\r\n folded\r\nContent-Length: 52\r\n\r\n", id="a folded line"),
        pytest.param(HEAD + b"A: b\nContent-Length: 52\r\n\r\n", id="a line ended by LF alone"),
        pytest.param(HEAD + b"A: b\rContent-Length: 52\r\n\r\n", id="a lone CR"),
        pytest.param(HEAD + b"A: b\0\r\nContent-Length: 52\r\n\r\n", id="a zero byte"),
        pytest.param(HEAD + b"Host: y\r\n\r\n", id="two hosts"),
        pytest.param(HEAD + b"Authorization: a\r\nAuthorization: b\r\n\r\n", id="two logins"),
        pytest.param(b"POST /first\r\n\r\n", id="no version"),
        pytest.param(b"GET /first\r\n\r\n", id="HTTP/0.9"),
        pytest.param(b"POST  /first HTTP/1.1\r\n\r\n", id="two blanks"),
        pytest.param(b"POST /first HTTP/1.1 x\r\n\r\n", id="four words"),
        pytest.param(b"POST /first HTTP/1.1\n\r\n", id="a request line ended by LF alone"),
        pytest.param(b"\r\n", id="an empty line"),
        pytest.param(chunked(b"5", b"hello", b"x", b"", b""), id="a size that is none"),
        pytest.param(chunked(b"", b"hello"), id="an empty size"),
        pytest.param(chunked(b"-5", b"hello"), id="a negative size"),
        pytest.param(chunked(b"0x5", b"hello"), id="a size with a prefix"),
        pytest.param(chunked(b" 5", b"hello"), id="a blank before a size"),
        pytest.param(chunked(b"5\n", b"hello"), id="LF behind a size"),
        pytest.param(chunked(b"5", b"hello!", b"0", b"", b""), id="a chunk that is longer than its size"),
        pytest.param(chunked(b"5;" + b"x" * CHUNK_LINE_BYTES_MAX, b"hello"), id="a long extension"),
        pytest.param(chunked(b"0", b"Content-Length : 5", b"", b""), id="a trailer that is no header"),
    ],
)
def test_malformed_framing_is_refused_and_ends_the_connection(server: HttpServer, seen: list[str], sent: bytes) -> None:
    read = answers(server, sent + SECOND)
    assert read.startswith(b"HTTP/1.1 400 ")
    assert read.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in read
    assert "/second" not in seen


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HEAD + b"Content-Length: 000000000000000000003000000000\r\n\r\n", id="zeros before it"),
        pytest.param(HEAD + b"Content-Length: 00000000000000000005\r\n\r\nhello", id="more than ten digits"),
        pytest.param(HEAD + b"Content-Length: %s\r\n\r\n" % (b"9" * 4_400), id="4,400 digits"),
        pytest.param(HEAD + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1), id="a byte too many"),
        pytest.param(chunked(b"%x" % (BODY_BYTES_MAX + 1), b"hello"), id="a chunk with a byte too many"),
        pytest.param(chunked(b"5", b"hello", b"%x" % BODY_BYTES_MAX, b"hello"), id="chunks with more bytes together"),
        pytest.param(chunked(b"0" * 17 + b"5", b"hello"), id="a size of many digits"),
        pytest.param(chunked(b"f" * 17, b"hello"), id="a size beyond all numbers"),
        pytest.param(chunked(*(b"1", b"x") * (BODY_BYTES_MAX // 3 + 1), b"0", b"", b""), id="sizes longer than data"),
        pytest.param(chunked(b"0", *(b"A: b",) * (HEADERS_MAX + 1), b"", b""), id="many trailers"),
    ],
)
def test_no_spelling_of_a_length_is_beyond_the_bound(server: HttpServer, sent: bytes) -> None:
    read = answers(server, sent + SECOND)
    assert read.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 431 "))
    assert read.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "headers",
    [b"A: b\r\n" * (HEADERS_MAX + 1), b"A: %s\r\n" % (b"x" * HEAD_BYTES_MAX), (b"A: %s\r\n" % (b"x" * 8_000)) * 10],
    ids=["many", "long", "long together"],
)
def test_the_headers_of_a_request_have_a_bound_together(server: HttpServer, headers: bytes) -> None:
    read = answers(server, HEAD + headers + b"\r\n" + SECOND)
    assert read.startswith(b"HTTP/1.1 431 ")
    assert read.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ((b"5", b"hello", b"6;a=b", b" world", b"0", b"", b""), b"11 hello world"),
        ((b"00005", b"hello", b"000", b"A: trailer", b"", b""), b"5 hello"),
        ((b"0", b"", b""), b"0 "),
        ((b"%X" % BODY_BYTES_MAX, b"x" * BODY_BYTES_MAX, b"0", b"", b""), b"1048576 " + b"x" * 20),
    ],
    ids=["two chunks", "zeros and a trailer", "nothing", "as much as may be"],
)
def test_a_body_in_chunks_is_taken_and_the_connection_goes_on(
    server: HttpServer, seen: list[str], lines: tuple[bytes, ...], answer: bytes
) -> None:
    read = answers(server, chunked(*lines) + SECOND)
    assert b"\r\n\r\n%sHTTP/1.1 200 " % answer in read
    assert seen == ["/first", "/second"]


@pytest.mark.parametrize("path", [b"/login", b"/fails", b"/unread"])
def test_nothing_of_a_body_is_read_before_a_login_and_what_is_not_read_is_no_request(
    server: HttpServer, seen: list[str], path: bytes
) -> None:
    """No byte of the body is there when the answer comes; when it is, the server drops it."""
    for framing in (b"Content-Length: 52\r\n", b"Transfer-Encoding: chunked\r\n"):
        head = b"POST %s HTTP/1.1\r\nExpect: 100-continue\r\n%s\r\n" % (path, framing)
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30) as wire:
            wire.sendall(head)
            first = wire.recv(65536)
            assert first.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 500 ", b"HTTP/1.1 200 "))
            assert b"\r\nConnection: close\r\n" in first
            wire.sendall(SECOND)
            while piece := wire.recv(65536):
                first += piece
            assert first.count(b"HTTP/1.1 ") == 1
    assert "/second" not in seen


def test_who_waits_to_be_asked_for_a_body_is_asked_when_it_is_wanted(server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30) as wire:
        wire.sendall(HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert wire.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(b"hello")
        read = b""
        while piece := wire.recv(65536):
            read += piece
        assert read.endswith(b"\r\n\r\n5 hello")
