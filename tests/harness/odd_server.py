"""A server that answers what a test says, byte by byte, to whoever asks it by HTTP; for servers of tokens that are not as they should be."""

import json
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType


class OddServer:
    """Gives each connection to `answer`, with the request that came on it. A context manager.

    Parameters
    ----------
    answer : callable
        Gets the request and the socket, and may block until `over` is set.
    context : ssl.SSLContext, optional
        For HTTPS.
    """

    def __init__(self, answer: Callable[[bytes, socket.socket], None], context: ssl.SSLContext | None = None) -> None:
        #: What was asked, each request with its body.
        self.asked: list[bytes] = []
        #: Set when the test is over.
        self.over = threading.Event()
        self._answer = answer
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        #: Where it listens.
        self.port = int(self._listening.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "OddServer":
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        # Wakes the thread that accepts; closing alone would not.
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                spoken = (
                    connection if self._context is None else self._context.wrap_socket(connection, server_side=True)
                )
                with spoken:
                    request = _request(spoken)
                    if request:
                        self.asked.append(request)
                        self._answer(request, spoken)
            except OSError:
                pass  # the client has had enough


def _request(connection: socket.socket) -> bytes:
    """A request with its body; what there is of it when the client hangs up."""
    with connection.makefile("rb") as incoming:
        lines = []
        while (line := incoming.readline()) not in (b"", b"\r\n"):
            lines.append(line)
        lengths = [int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length:")]
        return b"".join(lines) + b"\r\n" + incoming.read(sum(lengths)) if lines else b""


def answer(document: object, status: int = 200, **headers: str) -> Callable[[bytes, socket.socket], None]:
    """One answer to all: a text as it stands, anything else as JSON."""
    body = (document if isinstance(document, str) else json.dumps(document)).encode()
    said = {"Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in said.items())

    def send(_request: bytes, connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body)

    return send
