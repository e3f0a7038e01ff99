"""Ports of this machine at which nothing listens, and nothing will: each is bound as long as this process lives, without a listener."""

import functools
import socket

_HOST = "127.0.0.1"
_held: list[socket.socket] = []


@functools.cache
def silent_port(number: int = 0) -> int:
    """A port that refuses every connection; another one for each `number`."""
    held = socket.socket()
    held.bind((_HOST, 0))
    _held.append(held)
    return int(held.getsockname()[1])


def nowhere(number: int = 0) -> str:
    """Its address, ``HOST:PORT``."""
    return f"{_HOST}:{silent_port(number)}"
