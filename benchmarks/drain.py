"""A process that reads what is sent to it and drops it: what the way through a socket costs where nobody does anything with the bytes.

Started by `Drain` as ``python -m benchmarks.drain``; it prints its port, and ends with its stdin.
"""

import socket
import subprocess
import sys
import threading
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_PIECE_BYTES = 1 << 20
_END_DEADLINE_S = 10


class Drain:
    """The running process; `address` is where it listens."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.drain"]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=_END_DEADLINE_S)


def connected(address: str) -> socket.socket:
    """A connection to the drain at `address`."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


def _drop(connection: socket.socket) -> None:
    piece = bytearray(_PIECE_BYTES)
    with connection:
        while connection.recv_into(piece):
            pass
        connection.sendall(b".")  # all of it was read


def _serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_drop, args=(connection,), daemon=True).start()


def main() -> None:
    """Drop what comes until stdin ends."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(server,), daemon=True).start()
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
