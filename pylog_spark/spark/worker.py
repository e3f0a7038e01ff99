"""Makes a Python process of Spark quick: one that runs a task with few rows at once, each from its second task on.

Spark keeps its Python workers from task to task and collects garbage after each task (``pyspark/daemon.py``). Such a
collection visits mostly objects of imported modules (some ten thousand of pyspark and pyarrow, more with pandas, which
pyarrow imports: 20 to 40 ms), and the next task waits for it: with small micro-batches that is most of a task's time. The
processes in which Spark plans a read or write and commits a micro-batch are kept and cleaned in the same way.

Spark's JVM sends a task its rows over a TCP connection with Nagle's algorithm: behind a piece of data that is not acknowledged it holds
back what does not fill a segment. Linux acknowledges at once only what it can answer soon, and otherwise after 40 ms; a task that has
not got its rows answers nothing. So a task with few rows, or one that reads, which gets its range in that way, waits 40 ms for them,
unless it asks the system to acknowledge.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from contextlib import suppress

_modules = 0


def freeze_imports() -> None:
    """Exclude the objects that are alive now from later garbage collections, when a module was imported since the last call.

    They are still freed when nothing refers to them; only a cycle that is alive now would stay. A process that is
    forked later inherits both the count of modules and the exclusion.
    """
    global _modules
    if len(sys.modules) > _modules:
        _modules = len(sys.modules)
        gc.freeze()


def acknowledge() -> None:
    """Acknowledge what the connections of this process have received, and from now on at once, until they are written to.

    To be called in a task before it waits for its rows or its range. Only Linux has that, and Spark's Unix sockets do not need it.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None:
        return
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile, by another thread or since it was that of the folder
            _set_for_tcp(int(name), option)


def _set_for_tcp(descriptor: int, option: int) -> None:
    """Set an option of TCP, if the descriptor is a socket of that protocol."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    connection = socket.socket(fileno=descriptor)
    try:
        if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        connection.detach()  # it belongs to whoever opened it
