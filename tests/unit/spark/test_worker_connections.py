"""What a task of Spark does so that its rows are not held back by the JVM: a real connection over the loopback, as Spark's is."""

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from pylog_spark.sink.task import WritePlan
from pylog_spark.source.partition import RangeSource
from pylog_spark.spark.worker import acknowledge
from tests.harness.ports import nowhere

_ROUNDS = 5
#: Linux acknowledges after 40 ms what it does not answer.
_SOON_S = 0.02

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux acknowledges on demand")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: the JVM's, which does not send at once, and the task's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        jvm = socket.create_connection(server.getsockname())
        task, _ = server.accept()
        with jvm, task:
            yield jvm, task


_CARRIED = pickle.dumps(RangeSource({}, ("value",), {}, 1, True))


def _write(rows: Callable[[], None]) -> None:
    """Let a task that writes at least once ask for its rows, which are none."""

    def batches() -> Iterator[object]:
        rows()
        yield from ()

    client = {"bootstrap.servers": nowhere()}
    assert WritePlan(client, "t", {"value": "value"}, "at-least-once").write(batches()).records == 0  # type: ignore[arg-type]


def _read(rows: Callable[[], None]) -> None:
    """Let a task unpickle how to read, as it does before it gets its range."""
    assert pickle.loads(_CARRIED).columns == ("value",)
    rows()


def _waits_s(jvm: socket.socket, task: socket.socket, run: Callable[[Callable[[], None]], None]) -> float:
    """Seconds that a task waits for its few rows, which come in a second piece behind that which says what to do."""
    seconds = []

    def rows() -> None:
        started = time.monotonic()
        assert task.recv(100) == b"rows"
        seconds.append(time.monotonic() - started)

    for _ in range(3):  # the task before has answered, so that the system waits for an answer of this one
        jvm.sendall(b"task")
        task.recv(100)
        task.sendall(b"done")
        jvm.recv(100)
    jvm.sendall(b"task")
    task.recv(100)
    jvm.sendall(b"rows")
    run(rows)
    return seconds[0]


@pytest.mark.parametrize("run", [_read, _write])
def test_few_rows_are_not_held_back(
    ends: tuple[socket.socket, socket.socket], run: Callable[[Callable[[], None]], None]
) -> None:
    assert min(_waits_s(*ends, run) for _ in range(_ROUNDS)) < _SOON_S


def test_other_descriptors_are_left_alone(ends: tuple[socket.socket, socket.socket]) -> None:
    reading, writing = os.pipe()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with datagrams, open(reading, "rb") as ours, open(writing, "wb") as theirs:
        acknowledge()
        theirs.write(b"still open")
        theirs.close()
        assert ours.read() == b"still open"
        assert datagrams.fileno() >= 0
        assert ends[0].send(b"x") == 1
        assert ends[1].recv(1) == b"x"
