"""Where a request of HTTP/1.1 begins and ends (RFC 9112), for every server here. The only place that reads a length.

A peer between a client and this server may read malformed framing in another way than we do, and one request would become two; so whatever the
RFC does not allow is refused, as is what it lets a server choose: folded lines, lines that end in LF alone, a length that is said twice. After a
refusal, nothing of what follows is a request.

Everything is counted while it is read: a request line and the headers have at most `HEAD_BYTES_MAX` bytes together, a body at most
`BODY_BYTES_MAX`, and what frames a body in chunks again as much. Nothing is allocated by what a peer says about its length. A `Body` is read by one thread.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from http.client import HTTPMessage
from typing import NamedTuple, Protocol

from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import BODY_BYTES_MAX

#: The request line and the headers of a request, together.
HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 100
#: A length, with all of its zeros.
LENGTH_DIGITS_MAX = 10
#: A line with the size of a chunk and its extensions.
CHUNK_LINE_BYTES_MAX = 1024
#: The size of a chunk, with all of its zeros.
CHUNK_DIGITS_MAX = 8
_PIECE_BYTES = 64 * 1024
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([!-~]+) HTTP/([0-9])\.([0-9])")
_HEADER = re.compile(rf"({_TOKEN}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]+)[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
# Which of two an intermediary believes, nobody knows.
_ONCE = ("host", "authorization", "content-length", "transfer-encoding")
_TOO_LARGE = (
    f"The body of a request has at most {BODY_BYTES_MAX} bytes, and its length at most {LENGTH_DIGITS_MAX} digits."
)


class Stream(Protocol):
    """What a connection gives: buffered bytes."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self, size: int, /) -> bytes: ...


class RequestLine(NamedTuple):
    """The first line of a request; `is_old` for HTTP/1.0."""

    method: str
    target: str
    is_old: bool


def request_line(line: bytes) -> RequestLine:
    """The parts of the first line, with its end. Raises `Refusal`."""
    if len(line) > HEAD_BYTES_MAX:
        raise Refusal(414, 414, f"A request line has at most {HEAD_BYTES_MAX} bytes.")
    found = _REQUEST_LINE.fullmatch(_without_end(line))
    if found is None:
        raise _malformed("A request begins with METHOD TARGET HTTP/1.1, with one blank between them.")
    method, target, major, minor = found.groups()
    if major != "1":
        raise Refusal(505, 505, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED.phrase)
    return RequestLine(method, target, minor == "0")


def headers_of(stream: Stream, left: int = HEAD_BYTES_MAX) -> HTTPMessage:
    """The headers, or trailers, up to the empty line, of so many bytes at most. Raises `Refusal`."""
    headers = HTTPMessage()
    for _ in range(HEADERS_MAX + 1):
        line = stream.readline(left + 1)
        left -= len(line)
        if left < 0:
            break
        text = _without_end(line)
        if not text:
            return headers
        found = _HEADER.fullmatch(text)
        if found is None:
            raise _malformed("A header is NAME: VALUE in one line, without a blank before the colon.")
        name, value = found[1], found[2].rstrip(" \t")
        if name.lower() in _ONCE and name in headers:
            raise _malformed(f"A request says {name} once.")
        headers[name] = value
    raise Refusal(431, 431, f"A request has at most {HEADERS_MAX} headers, and {HEAD_BYTES_MAX} bytes of them.")


class Body:
    """The body of a request, which is read when it is wanted.

    Parameters
    ----------
    stream : Stream
        Where it comes from.
    headers : HTTPMessage
        What says how long it is.
    is_old : bool
        Whether the request is one of HTTP/1.0, which has no chunks.

    Attributes
    ----------
    is_read : bool
        Whether the next byte of the stream is one of the next request.

    Raises
    ------
    Refusal
        The headers do not say how long it is, or it is too long.
    """

    def __init__(self, stream: Stream, headers: HTTPMessage, is_old: bool) -> None:
        self._stream = stream
        coding, length = headers.get("Transfer-Encoding"), headers.get("Content-Length")
        if coding is not None and (coding.lower() != "chunked" or length is not None or is_old):
            raise _malformed("A body in pieces has the one coding chunked, and no Content-Length.")
        self._is_chunked, self._length = coding is not None, 0 if length is None else _length(length)
        self.is_read = not self._is_chunked and self._length == 0

    def read(self) -> bytes:
        """All of it. Raises `Refusal`, and `ConnectionError` when it ends early."""
        if self.is_read:
            return b""
        read = bytearray()
        if self._is_chunked:
            self._read_chunks(read)
        else:
            self._read_exactly(self._length, read)
        self.is_read = True
        return bytes(read)

    def _read_exactly(self, length: int, into: bytearray) -> None:
        while length:
            piece = self._stream.read(min(_PIECE_BYTES, length))
            if not piece:
                raise ConnectionError("the body ended early")
            into += piece
            length -= len(piece)

    def _read_chunks(self, into: bytearray) -> None:
        # One byte in each chunk would make others read six.
        framing_left = BODY_BYTES_MAX
        while True:
            line = self._stream.readline(CHUNK_LINE_BYTES_MAX + 1)
            framing_left -= len(line) + 2
            size = _chunk_size(line)
            if framing_left < 0 or size > BODY_BYTES_MAX - len(into):
                raise Refusal(413, 413, _TOO_LARGE)
            if size == 0:
                # What trailers say is not believed: no login came before them.
                headers_of(self._stream)
                return
            self._read_exactly(size, into)
            if self._stream.read(2) != b"\r\n":
                raise _malformed("A chunk is as long as its size says.")


def _length(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _malformed("The length of a body (Content-Length) is a number.")
    if len(text) > LENGTH_DIGITS_MAX or int(text) > BODY_BYTES_MAX:
        raise Refusal(413, 413, _TOO_LARGE)
    return int(text)


def _chunk_size(line: bytes) -> int:
    found = _CHUNK.fullmatch(line[:-2]) if line.endswith(b"\r\n") and len(line) <= CHUNK_LINE_BYTES_MAX else None
    if found is None:
        raise _malformed(f"A chunk begins with its size, in a line of at most {CHUNK_LINE_BYTES_MAX} bytes.")
    if len(found[1]) > CHUNK_DIGITS_MAX:
        raise Refusal(413, 413, _TOO_LARGE)
    return int(found[1], 16)


def _without_end(line: bytes) -> str:
    if not line:
        raise ConnectionError("the request ended early")
    if not line.endswith(b"\r\n"):
        raise _malformed("The lines of a request end in CR and LF.")
    return line[:-2].decode("latin-1")


def _malformed(sentence: str) -> Refusal:
    return Refusal(400, 400, sentence)
