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
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ssl

CONNECTIONS_MAX = 256
BODY_BYTES_MAX = 1 << 20
SENTENCE_CHARS_MAX = 200
IDLE_S = 60.0
REQUEST_S = 60.0
DROPPED_BYTES_MAX = 16 * BODY_BYTES_MAX
DROP_S = 10.0
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


class HttpServer(ThreadingMixIn, TCPServer):
    """Serves in a thread of its own from `start` to `close`.

    Parameters
    ----------
    host, port : str, int
        Where it listens; port 0 takes a free port.
    handler : callable
        Gives the type of what answers, a `web.handler.Handler`; called for each connection, so that nothing of HTTP is loaded before the first one.
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
        self,
        host: str,
        port: int,
        handler: Callable[[], type[BaseRequestHandler]],
        tls: ssl.SSLContext | None,
        log: logging.Logger,
    ) -> None:
        self.tls, self.log, self._handler = tls, log, handler
        self._open: dict[socket.socket, _Connection] = {}
        self._lock = threading.Lock()
        self._refused_at = 0.0
        # What threads log is of this broker.
        self._context = contextvars.copy_context()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), BaseRequestHandler)
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
        """Also at an address whose last connections are not all forgotten yet."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        self._handler()(request, client_address, self)

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


def _end(wire: socket.socket) -> None:
    with contextlib.suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
