"""What answers a connection of `web.server`, with its bounds. Loaded by the first connection: the standard library's HTTP and what it needs,
OpenSSL among it, would else be in the memory of a broker that nobody asks. Not thread-safe: each connection has a thread.
"""

from __future__ import annotations

import contextlib
import socket
from abc import ABC, abstractmethod
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from pylog_spark.web import server
from pylog_spark.web.framing import HEAD_BYTES_MAX, Body, headers_of, request_line
from pylog_spark.web.refusal import Refusal
from pylog_spark.web.server import Content, HttpServer

# What a request that failed by a mistake of ours is answered.
_FAILED = "The server failed; its log says how."
_PIECE_BYTES = 64 * 1024


class Handler(BaseHTTPRequestHandler, ABC):
    """One connection. A subclass gives `answered` and `refused`; it looks at the login before it asks for the `body`, and a body that it did not
    ask for ends the connection."""

    protocol_version = "HTTP/1.1"
    timeout = server.IDLE_S
    # An answer is written in two pieces, headers and body; the second would wait for the client to acknowledge the first, for 40 ms.
    disable_nagle_algorithm = True
    server_version, sys_version = "pylog", ""
    _is_cut = _is_awaited = False
    _body: Body
    raw_requestline: bytes

    @property
    def _http(self) -> HttpServer:
        return cast(HttpServer, self.server)

    @abstractmethod
    def answered(self) -> Content:
        """The answer to the request. Raises `Refusal`."""

    @abstractmethod
    def refused(self, refusal: Refusal) -> Content:
        """What is sent with the status of a refusal."""

    def setup(self) -> None:
        """With TLS the handshake comes first, in the thread of the connection."""
        self._socket = self.request
        if self._http.tls is not None:
            self.request.settimeout(self.timeout)
            self.request = self._http.tls.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
            self._http.encrypted(self._socket, self.request)
            self.request.do_handshake()
        super().setup()

    def handle_one_request(self) -> None:
        """Each request has its own time; waiting for the next one counts to it."""
        self._http.deadline(self._socket, server.IDLE_S + server.REQUEST_S)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the request's head by `web.framing`; the standard library's reader takes what others read in another way."""
        self.command, self.path, self.requestline, self.request_version = "", "", "", self.protocol_version
        self.close_connection = True
        try:
            self.command, self.path, is_old = request_line(self.raw_requestline)
            self.requestline = f"{self.command} {self.path}"
            self.headers = headers_of(self.rfile, HEAD_BYTES_MAX - len(self.raw_requestline))
            self._body = Body(self.rfile, self.headers, is_old)
        except Refusal as refusal:
            self.send_error(refusal.status, refusal.sentence)
            return False
        # A path that begins with two slashes would be a host where it is given back.
        self.path = "/" + self.path.lstrip("/") if self.path.startswith("//") else self.path
        connection = {word.strip().lower() for word in self.headers.get("Connection", "").split(",")}
        self.close_connection = "close" in connection or (is_old and "keep-alive" not in connection)
        self._is_awaited = not is_old and self.headers.get("Expect", "").lower() == "100-continue"
        return True

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests are lines for those who look for them."""
        self._http.log.debug("%s %s", self.client_address[0], format % args)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request of HTTP is refused in the same form, too, and the connection ends."""
        self._leaves_unread()
        # Before a request line is read, the standard library assumes a client of HTTP/0.9, and sends no headers.
        self.request_version = self.protocol_version
        sentence = message or explain or HTTPStatus(code).phrase
        with contextlib.suppress(OSError):
            self._send(int(code), self.refused(Refusal(int(code), int(code), sentence[: server.SENTENCE_CHARS_MAX])))

    def _serve(self) -> None:
        self._http.deadline(self._socket, server.REQUEST_S)
        try:
            status, content = 200, self.answered()
        except Refusal as refusal:
            status, content = refusal.status, self.refused(refusal)
        except (OSError, ConnectionError):
            raise
        except Exception:
            self._http.log.exception("A request failed: %s %s", self.command, self.path[:200])
            status, content = 500, self.refused(Refusal(500, 50001, _FAILED))
            self._leaves_unread()
        if not self._body.is_read:
            # It would be taken for the next request.
            self._leaves_unread()
        try:
            self._send(status, content)
        finally:
            content.release()

    def body(self) -> bytes:
        """All bytes behind the request's headers; a subclass asks for them after the login. Raises `Refusal`."""
        if not self._body.is_read and self._is_awaited:
            self._is_awaited = False
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()
        return self._body.read()

    def _send(self, status: int, content: Content) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content.media)
        self.send_header("Content-Length", str(len(content.sent)))
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="pylog"')
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, text in content.headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content.sent)

    def _leaves_unread(self) -> None:
        """The connection ends after the answer, as what comes behind it is no request."""
        self.close_connection = self._is_cut = True

    def finish(self) -> None:
        """Drop what a refused client still sends: a socket that is closed with unread bytes takes the answer from the client, too (RFC 9112, 9.6)."""
        if self._is_cut:
            self._http.deadline(self._socket, server.DROP_S)
            with contextlib.suppress(OSError, ValueError):
                self.request.shutdown(socket.SHUT_WR)
                dropped = 0
                while dropped < server.DROPPED_BYTES_MAX and (piece := self.rfile.read1(_PIECE_BYTES)):
                    dropped += len(piece)
        super().finish()
