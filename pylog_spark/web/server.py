"""An HTTP server with bounds: one thread for each connection, each with an end.

A connection that sends nothing for `IDLE_S` is closed, and so is one whose request has not all come, or whose answer is not all taken, in
`REQUEST_S`; there are `CONNECTIONS_MAX` at most, of one address half of them; a body has at most `BODY_BYTES_MAX` bytes.
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
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast

from pylog_spark.web.refusal import Refusal

CONNECTIONS_MAX = 256
BODY_BYTES_MAX = 1 << 20
SENTENCE_CHARS_MAX = 200
IDLE_S = 60.0
REQUEST_S = 60.0
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
        self._open: dict[socket.socket, tuple[str, float]] = {}
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
            of_address = sum(1 for each, _ in self._open.values() if each == address)
            if len(self._open) < CONNECTIONS_MAX and of_address < CONNECTIONS_MAX // 2:
                self._open[request] = (address, time.monotonic() + REQUEST_S)
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
                self._open.pop(request, None)

    def deadline(self, request: Any, after_s: float) -> None:
        """From now on this connection has so much time."""
        with self._lock:
            if request in self._open:
                self._open[request] = (self._open[request][0], time.monotonic() + after_s)

    def service_actions(self) -> None:
        """End connections whose time is over: their threads find the socket closed."""
        with self._lock:
            late = [request for request, (_, until) in self._open.items() if time.monotonic() > until]
        for request in late:
            _end(request)

    def end_all(self) -> None:
        """End every connection."""
        with self._lock:
            left = list(self._open)
        for request in left:
            _end(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or no TLS, is no error of ours."""
        self.log.debug("A connection from %s ended early.", client_address[0], exc_info=True)


class Handler(BaseHTTPRequestHandler, ABC):
    """One connection. A subclass gives `answered` and `refused`."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server_version, sys_version = "pylog", ""

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
        self.close_connection = True
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
            self.close_connection = True
            raise Refusal(411, 411, "A request says the length of its body (Content-Length).")
        # What is not read would be taken for the next request.
        if int(length[:20]) > BODY_BYTES_MAX:
            self.close_connection = True
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
        for name, text in content.headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content.sent)


def _end(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
