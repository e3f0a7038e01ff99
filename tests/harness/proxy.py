"""A network that can be cut: connections to every broker and to ZooKeeper go through a proxy that knows the process that opened them.

Who dials is looked up by the process that owns the other end of a connection, so one advertised address is enough to cut any
pair of processes apart, and root is not needed. A process without a name here is a client.

`cut` is silent, as a real partition is: bytes wait and arrive when it heals, a new connection hangs. `reset` breaks what is
connected and refuses what comes. `delay` holds every piece of bytes for a while.
"""

import asyncio
import os
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

CLIENT = "client"
HOST = "127.0.0.1"
_PIECE = 65_536
_NO_LINGER = struct.pack("ii", 1, 0)
_CALL_DEADLINE_S = 30
_LAST_TURNS = 5

# Of the kernel's sock_diag(7): a question about one socket, and where its answer has the inode.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST, _ANY = 4, 20, 1, 0xFFFFFFFF
_HEADER_BYTES = 16
_INODE_AT = _HEADER_BYTES + 68

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class _Link:
    """One connection: who dialled, from and to which port, and whom."""

    source: str
    port: int
    dialled: int
    end: str


class Network:
    """The links between named ends. Use it as a context manager; its thread ends with it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._owners: dict[int, str] = {}
        self._open: defaultdict[tuple[str, str], asyncio.Event] = defaultdict(_set)
        self._refused: set[tuple[str, str]] = set()
        self._delays: dict[tuple[str, str], float] = {}
        self._connections: dict[asyncio.Task[None], _Link] = {}
        self._servers: list[asyncio.Server] = []
        self._closed = False
        #: Connections ever made, by (who dialled, whom).
        self.dialled: defaultdict[tuple[str, str], int] = defaultdict(int)

    def __enter__(self) -> "Network":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def name(self, pid: int, end: str) -> None:
        """Say that what process `pid` dials, or has dialled, comes from `end`."""
        self._owners = {known: name for known, name in self._owners.items() if name != end} | {pid: end}
        self._do(self._change(self._name))

    def _name(self) -> None:
        for link in self._connections.values():
            if link.source == CLIENT:
                link.source = self._owner(link.port, link.dialled)

    def listen(self, end: str, port: int) -> int:
        """A port of this machine that leads to `port`, where `end` listens now or later."""
        return self._do(self._listen(end, port))

    def cut(self, source: str, target: str) -> None:
        """From now on nothing that `source` sends reaches `target`; the other way stays as it is."""
        self._do(self._change(lambda: self._open[source, target].clear()))

    def reset(self, end: str, other: str) -> None:
        """Break every connection between the two, and refuse new ones."""
        self._do(self._break(end, other))

    def delay(self, source: str, target: str, seconds: float) -> None:
        """From now on what `source` sends takes `seconds` longer to reach `target`."""
        self._do(self._change(lambda: self._delays.update({(source, target): seconds})))

    def heal(self) -> None:
        """Everything is connected again, and what waited goes on its way."""
        self._do(self._change(self._heal))

    def _heal(self) -> None:
        self._refused.clear()
        self._delays.clear()
        for gate in self._open.values():
            gate.set()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_DEADLINE_S)

    async def _change(self, change: Callable[[], None]) -> None:
        change()

    async def _break(self, end: str, other: str) -> None:
        pairs = {(end, other), (other, end)}
        self._refused |= pairs
        for task, link in self._connections.items():
            if (link.source, link.end) in pairs:
                task.cancel()

    async def _close(self) -> None:
        self._closed = True
        # A server that closes while a connection is being accepted forgets that one's socket (asyncio of Python 3.11): first
        # no more are accepted, and the tasks that accept come to their end by themselves.
        for listening in [listening_socket for server in self._servers for listening_socket in server.sockets]:
            self._loop.remove_reader(listening.fileno())
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._connections:
                task.cancel()
            await asyncio.wait(tasks)
        for server in self._servers:
            server.close()
        # What ended has callbacks left.
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    async def _listen(self, end: str, port: int) -> int:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._closed:
                writer.transport.abort()
                return
            ports = writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]
            link = _Link(self._owner(*ports), *ports, end)
            self.dialled[link.source, end] += 1
            task = self._loop.create_task(self._serve(link, port, reader, writer))
            self._connections[task] = link
            task.add_done_callback(self._connections.pop)
            # One that was cancelled before it began has closed nothing.
            task.add_done_callback(lambda _: writer.transport.abort())

        server = await asyncio.start_server(accepted, HOST, 0, family=socket.AF_INET)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, link: _Link, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            if (link.source, link.end) not in self._refused:
                await self._open[link.source, link.end].wait()
                await self._open[link.end, link.source].wait()
                far_reader, far_writer = await asyncio.open_connection(HOST, port)
                ends.append(far_writer)
                await self._carry(link, (reader, writer), (far_reader, far_writer))
        except (OSError, asyncio.CancelledError):
            for end in ends:
                # The other side sees a reset, not an end. The one that broke is closed already.
                with suppress(OSError):
                    end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                end.transport.abort()
        finally:
            await self._end(ends)

    async def _end(self, ends: list[asyncio.StreamWriter]) -> None:
        """Close both ends once what was written has gone out, or at once when that need not be waited for."""
        for end in ends:
            end.close()
        try:
            await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)
        except asyncio.CancelledError:
            for end in ends:
                end.transport.abort()

    async def _carry(self, link: _Link, near: _Stream, far: _Stream) -> None:
        """Carry bytes both ways until one end closes."""
        there = self._loop.create_task(self._pump(lambda: (link.source, link.end), near[0], far[1]))
        back = self._loop.create_task(self._pump(lambda: (link.end, link.source), far[0], near[1]))
        try:
            done, _ = await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)

    async def _pump(
        self, way: Callable[[], tuple[str, str]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry bytes one way until an end closes. That a process is gone is not seen while the link is cut, either."""
        while True:
            piece = await reader.read(_PIECE)
            if seconds := self._delays.get(way()):
                await asyncio.sleep(seconds)
            await self._open[way()].wait()
            if not piece:
                return
            writer.write(piece)
            await writer.drain()

    def _owner(self, port: int, dialled: int) -> str:
        """The name of the process that dialled from `port`."""
        inode = _inode(port, dialled)
        for pid, name in list(self._owners.items()) if inode is not None else ():
            with suppress(OSError):
                if any(
                    _link(f"/proc/{pid}/fd/{descriptor}") == f"socket:[{inode}]"
                    for descriptor in os.listdir(f"/proc/{pid}/fd")
                ):
                    return name
        return CLIENT


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


def _link(path: str) -> str | None:
    with suppress(OSError):
        return os.readlink(path)
    return None


def _inode(port: int, dialled: int) -> int | None:
    """The socket of this machine that is connected from `port` to `dialled`: one question to the kernel, however many there are."""
    address = socket.inet_aton(HOST) + bytes(12)
    which = struct.pack(">HH", port, dialled) + address + address + struct.pack("=III", 0, _ANY, _ANY)
    question = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY) + which
    header = struct.pack("=IHHII", _HEADER_BYTES + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(header + question)
        answer = kernel.recv(_PIECE)
    (kind,) = struct.unpack_from("=H", answer, 4)
    return int(struct.unpack_from("=I", answer, _INODE_AT)[0]) if kind == _SOCK_DIAG_BY_FAMILY else None
