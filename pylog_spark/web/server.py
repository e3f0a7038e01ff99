"""An HTTP server with bounds: one thread for each connection, each with an end.

A connection that sends nothing for `IDLE_S` is closed, and so is one whose request has not all come, or whose answer is not all taken, in
`REQUEST_S`; there are `CONNECTIONS_MAX` at most, of one address half of them; a body has at most `BODY_BYTES_MAX` bytes. Of what a client
still sends when it is refused, `DROPPED_BYTES_MAX` bytes are read and dropped for `DROP_S` at most, so that it can read why.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import socket
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast

from pylog_spark.web.refusal import Refusal

CONNECTIONS_MAX = 256
BODY_BYTES_MAX = 1 << 20
SENTENCE_CHARS_MAX = 200
IDLE_S = 60.0
REQUEST_S = 60.0
DROPPED_BYTES_MAX = 16 * BODY_BYTES_MAX
DROP_S = 10.0
# What a request that failed by a mistake of ours is answered.
_FAILED = "The server failed; its log says how."
_PIECE_BYTES = 64 * 1024
# How often the server looks for connections whose time is over.
_LOOK_S = 0.5
# How long the socket waits for connections that are not accepted yet.
_BACKLOG = 128


class Content(NamedTuple):
    """The body of an answer: its media type, its bytes, what is called when they are sent or will not be, and further headers."""

    media: str
    sent: bytes
    release: Callable[[], None] = lambda: None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class _Connection:
    """One that is open: whose, its end (of `time.monotonic`), and the socket to end, which TLS replaces."""

    address: str
    until: float
    wire: socket.socket


class HttpServer(ThreadingHTTPServer):
    """Serves in a thread of its own from `start` to `close`.

    Parameters
    ----------
    host, port : str, int
        Where it listens; port 0 takes a free port.
    handler : type of Handler
        What answers.
    tls : ssl.SSLContext or None
        Its certificate; None: without encryption.
    log : logging.Logger
        For connections that are refused or failed.

    Raises
    ------
    OSError
        It cannot listen there.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = _BACKLOG

    def __init__(
        self, host: str, port: int, handler: type[Handler], tls: ssl.SSLContext | None, log: logging.Logger
    ) -> None:
        self.tls, self.log = tls, log
        self._open: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        self._refused_at = 0.0
        # What threads log is of this broker.
        self._context = contextvars.copy_context()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'http' if tls is None else 'https'}://{shown}:{self.server_address[1]}"
        self._thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Answer, by a thread of this name."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self.serve_forever, _LOOK_S), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more, and close the connections."""
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        self.server_close()
        self.end_all()

    def server_bind(self) -> None:
        """Without the look-up of the host's name that the base class does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more connection."""
        with self._lock:
            address = str(client_address[0])
            of_address = sum(1 for each in self._open.values() if each.address == address)
            if len(self._open) < CONNECTIONS_MAX and of_address < CONNECTIONS_MAX // 2:
                self._open[request] = _Connection(address, time.monotonic() + REQUEST_S, request)
                return True
            if time.monotonic() - self._refused_at > REQUEST_S:
                self._refused_at = time.monotonic()
                self.log.warning(
                    "A connection from %s is refused: %d are open, %d of them from there; more lines follow after %d s.",
                    address,
                    len(self._open),
                    of_address,
                    REQUEST_S,
                )
        return False

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end; also what begins a TLS handshake that does not come to its end."""
        try:
            self._context.copy().run(super().process_request_thread, request, client_address)
        finally:
            with self._lock:
                open_until_now = self._open.pop(request, None)
            if open_until_now is not None:
                # The base class closes what it accepted, which is no longer the connection under TLS.
                open_until_now.wire.close()

    def deadline(self, request: Any, after_s: float) -> None:
        """From now on this connection has so much time."""
        with self._lock:
            if request in self._open:
                self._open[request].until = time.monotonic() + after_s

    def encrypted(self, request: Any, wire: ssl.SSLSocket) -> None:
        """From now on this socket is the connection's: wrapping took it from `request`."""
        with self._lock:
            if request in self._open:
                self._open[request].wire = wire

    def service_actions(self) -> None:
        """End connections whose time is over: their threads find the socket closed."""
        with self._lock:
            late = [each.wire for each in self._open.values() if time.monotonic() > each.until]
        for wire in late:
            _end(wire)

    def end_all(self) -> None:
        """End every connection."""
        with self._lock:
            left = [each.wire for each in self._open.values()]
        for wire in left:
            _end(wire)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or no TLS, is no error of ours."""
        self.log.debug("A connection from %s ended early.", client_address[0], exc_info=True)


class Handler(BaseHTTPRequestHandler, ABC):
    """One connection. A subclass gives `answered` and `refused`."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server_version, sys_version = "pylog", ""
    _is_cut = False

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
        self._http.deadline(self._socket, IDLE_S + REQUEST_S)
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Requests are lines for those who look for them."""
        self._http.log.debug("%s %s", self.client_address[0], format % args)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request of HTTP is refused in the same form, too, and the connection ends."""
        self._leaves_unread()
        # Of what is no request the version is that of clients that read no headers.
        self.request_version = self.protocol_version
        sentence = message or explain or HTTPStatus(code).phrase
        with contextlib.suppress(OSError):
            self._send(int(code), self.refused(Refusal(int(code), int(code), sentence[:SENTENCE_CHARS_MAX])))

    def _serve(self) -> None:
        self._http.deadline(self._socket, REQUEST_S)
        try:
            status, content = 200, self.answered()
        except Refusal as refusal:
            status, content = refusal.status, self.refused(refusal)
        except (OSError, ConnectionError):
            raise
        except Exception:
            self._http.log.exception("A request failed: %s %s", self.command, self.path[:200])
            status, content = 500, self.refused(Refusal(500, 50001, _FAILED))
        try:
            self._send(status, content)
        finally:
            content.release()

    def body(self) -> bytes:
        """All bytes behind the request's headers. Raises `Refusal`."""
        length = self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding") or not length.isascii() or not length.isdigit():
            self._leaves_unread()
            raise Refusal(411, 411, "A request says the length of its body (Content-Length).")
        # What is not read would be taken for the next request.
        if int(length[:20]) > BODY_BYTES_MAX:
            self._leaves_unread()
            raise Refusal(413, 413, f"The body of a request has at most {BODY_BYTES_MAX} bytes.")
        read = bytearray()
        while len(read) < int(length):
            piece = self.rfile.read(min(_PIECE_BYTES, int(length) - len(read)))
            if not piece:
                self.close_connection = True
                raise ConnectionError("the body ended early")
            read += piece
        return bytes(read)

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
            self._http.deadline(self._socket, DROP_S)
            with contextlib.suppress(OSError, ValueError):
                self.request.shutdown(socket.SHUT_WR)
                dropped = 0
                while dropped < DROPPED_BYTES_MAX and (piece := self.rfile.read1(_PIECE_BYTES)):
                    dropped += len(piece)
        super().finish()


def _end(wire: socket.socket) -> None:
    with contextlib.suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
