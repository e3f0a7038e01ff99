"""The network of the tests: what is cut does not arrive, and arrives when it heals; the process that opened a connection is known."""

import gc
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.harness.children import PipedChild
from tests.harness.proxy import CLIENT, HOST, Network
from tests.harness.waiting import brief, until

_SOON_S = 0.3
_DEADLINE_S = 30
#: Dials, sends a word on demand, and prints what comes back.
_DIALLER = """
import socket, sys
sys.stdin.readline()
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    link.sendall(line.encode())
    print(link.recv(100).decode().strip(), flush=True)
"""


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as made:
        made.settimeout(_DEADLINE_S)
        yield made


def _linked(network: Network, server: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through the network, the dialling one first."""
    near = socket.create_connection((HOST, network.listen("server", server.getsockname()[1])), _DEADLINE_S)
    return near, server.accept()[0]


def _silent(end: socket.socket) -> bool:
    with brief(end, _SOON_S):
        try:
            return not end.recv(100)
        except TimeoutError:
            return True


def test_what_is_cut_one_way_waits_and_the_other_way_goes_on(network: Network, server: socket.socket) -> None:
    near, far = _linked(network, server)
    with near, far:
        network.cut(CLIENT, "server")
        near.sendall(b"question")
        assert _silent(far)
        far.sendall(b"word")
        assert near.recv(100) == b"word"
        network.heal()
        assert far.recv(100) == b"question"


def test_a_connection_made_while_cut_hangs_until_it_heals(network: Network, server: socket.socket) -> None:
    port = network.listen("server", server.getsockname()[1])
    network.cut("server", CLIENT)
    with socket.create_connection((HOST, port), _DEADLINE_S) as near:
        near.sendall(b"question")
        with brief(server, _SOON_S), pytest.raises(TimeoutError):
            server.accept()
        network.heal()
        with server.accept()[0] as far:
            assert far.recv(100) == b"question"


def test_a_reset_breaks_what_is_connected_and_refuses_what_comes(network: Network, server: socket.socket) -> None:
    near, far = _linked(network, server)
    with near, far:
        near.sendall(b"question")
        assert far.recv(100) == b"question"
        network.reset(CLIENT, "server")
        with pytest.raises(ConnectionResetError):
            near.recv(100)
        with pytest.raises(ConnectionResetError):
            far.recv(100)


def test_a_delay_holds_what_is_sent(network: Network, server: socket.socket) -> None:
    near, far = _linked(network, server)
    with near, far:
        network.delay(CLIENT, "server", _SOON_S)
        began = time.monotonic()
        near.sendall(b"question")
        assert far.recv(100) == b"question"
        assert time.monotonic() - began >= _SOON_S


def test_only_the_named_process_is_cut_off(network: Network, server: socket.socket) -> None:
    port = network.listen("server", server.getsockname()[1])
    command = [sys.executable, "-c", _DIALLER, str(port)]
    with PipedChild(command) as process:
        network.name(process.pid, "broker 1")
        process.say("dial")
        with server.accept()[0] as far, socket.create_connection((HOST, port), _DEADLINE_S) as other:
            network.cut("broker 1", "server")
            process.say("question")
            assert _silent(far)
            with server.accept()[0] as other_far:
                assert network.dialled == {("broker 1", "server"): 1, (CLIENT, "server"): 1}
                other.sendall(b"mine")
                assert other_far.recv(100) == b"mine"
            network.heal()
            assert far.recv(100) == b"question\n"
            far.sendall(b"answer\n")
            assert process.rest() == "answer\n"


def test_an_end_while_connections_are_being_made_leaves_none_open(server: socket.socket) -> None:
    stopped = threading.Event()

    def dial(port: int) -> None:
        while not stopped.is_set():
            with suppress(OSError):
                # No connection is accepted while the network ends.
                socket.create_connection((HOST, port), _SOON_S).close()

    for _ in range(10):
        with Network() as network:
            port = network.listen("server", server.getsockname()[1])
            threads = [threading.Thread(target=dial, args=(port,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            until(lambda: network.dialled, "a connection is opened", _DEADLINE_S)
        stopped.set()
        for thread in threads:
            thread.join()
        stopped.clear()
    # One that was left open complains now (`filterwarnings` makes it an error).
    gc.collect()
