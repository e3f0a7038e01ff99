"""The smallest possible client: one ApiVersions request over a raw socket. Tells when a broker serves."""

import socket
import struct
import time
from collections.abc import Callable

from tests.harness.waiting import until

_API_VERSIONS = 18
_CORRELATION_ID = 7


def read_exactly(sock: socket.socket, size: int) -> bytes:
    """Read `size` bytes. Raises ConnectionError when the peer closes before."""
    chunks = bytearray()
    while len(chunks) < size:
        chunk = sock.recv(size - len(chunks))
        if not chunk:
            raise ConnectionError(f"the peer closed the connection after {len(chunks)} of {size} bytes")
        chunks += chunk
    return bytes(chunks)


def answers(host: str, port: int, within_s: float = 1.0) -> bool:
    """Whether a fresh connection gets a good answer to ApiVersions v0 within `within_s`."""
    try:
        with socket.create_connection((host, port), timeout=within_s) as sock:
            return answers_over(sock)
    except OSError:
        return False


def answers_over(sock: socket.socket) -> bool:
    """Whether ApiVersions v0 gets a good answer over `sock`. Raises OSError when the peer goes away."""
    request = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION_ID, -1)
    sock.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", read_exactly(sock, 4))
    correlation_id, error_code = struct.unpack(">ih", read_exactly(sock, size)[:6])
    return correlation_id == _CORRELATION_ID and error_code == 0


def accepts(host: str, port: int, within_s: float = 1.0) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=within_s).close()
    except OSError:
        return False
    return True


def wait_until_it_answers(host: str, port: int, deadline_s: float, interval_s: float = 0.002) -> float:
    """Ask until a broker answers; returns the seconds it took. Raises TimeoutError."""
    return _wait(lambda: answers(host, port), f"no broker answered on {host}:{port}", deadline_s, interval_s)


def wait_until_it_accepts(host: str, port: int, deadline_s: float, interval_s: float = 0.01) -> float:
    """Connect until somebody listens; returns the seconds it took. Raises TimeoutError."""
    return _wait(lambda: accepts(host, port), f"nobody listened on {host}:{port}", deadline_s, interval_s)


def _wait(reached: Callable[[], bool], failed: str, deadline_s: float, interval_s: float) -> float:
    started = time.perf_counter()
    try:
        until(reached, failed, deadline_s, interval_s)
    except AssertionError as error:
        raise TimeoutError(str(error)) from None
    return time.perf_counter() - started
