"""A wire that is tapped: connections to a port go on to another one, and what came in is kept."""

import socket
import threading
from types import TracebackType

_PIECE = 65_536


class Tap:
    """Listens on `port` and passes everything on to `target`, a port of this machine. A context manager."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        #: Where it listens.
        self.port = int(self._listening.getsockname()[1])
        #: All that clients sent.
        self.sent = bytearray()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "Tap":
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until every client has hung up."""
        # Wakes the thread that accepts; closing alone would not.
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._threads.append(threading.Thread(target=self._carry, args=(near, far)))
            self._threads[-1].start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pump, args=(far, near, bytearray()))
        back.start()
        _pump(near, far, self.sent)
        back.join()
        near.close()
        far.close()


def _pump(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    try:
        while piece := source.recv(_PIECE):
            kept += piece
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one end broke, the other sees it
