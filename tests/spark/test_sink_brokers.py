"""Brokers that lack what exactly-once writing needs: one sentence, and the option that does without."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pylog_spark._native import Client
from pylog_spark.errors import PylogError
from pylog_spark.options import AT_LEAST_ONCE
from pylog_spark.sink.task import WritePlan
from pylog_spark.testing import LocalBroker

INIT_PRODUCER_ID, LIST_TRANSACTIONS = 22, 66
_UNKNOWN_KEY = 30_000


class OlderBroker:
    """A proxy before a broker that hides an API: the first answer on each connection is that to ApiVersions."""

    def __init__(self, hidden: int) -> None:
        self._entry = struct.pack(">h", hidden)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0

    def start(self, target: int) -> None:
        self.target = target
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self._copy, args=(client, broker, False), daemon=True).start()
            threading.Thread(target=self._copy, args=(broker, client, True), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            if answers:
                size = source.recv(4, socket.MSG_WAITALL)
                body = source.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
                sink.sendall(size + self._without_it(body))
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for broker in (source, sink):
                broker.close()

    def _without_it(self, body: bytes) -> bytes:
        # Correlation id (4), error (2), number of keys (1), then per key: key, lowest, highest (2 each), no tags (1).
        head, entries = body[:7], bytearray(body[7:])
        for start in range(0, (head[6] - 1) * 7, 7):
            if entries[start : start + 2] == self._entry:
                entries[start : start + 2] = struct.pack(">h", _UNKNOWN_KEY)
                return head + bytes(entries)
        raise AssertionError("the broker does not have the API that is to be hidden")


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Gives the address of a broker that lacks an API."""
    started: list[Any] = []

    def start(hidden: int) -> str:
        proxy = OlderBroker(hidden)
        broker = LocalBroker(tmp_path / "data", advertised_listeners=f"PLAINTEXT://127.0.0.1:{proxy.port}").start()
        started.extend([proxy, broker])
        proxy.start(broker.port)
        address = f"127.0.0.1:{proxy.port}"
        client = Client({"bootstrap.servers": address})
        client.create_topics([{"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": {}}])
        client.close()
        return address

    yield start
    for broker in started:
        broker.close()


@pytest.mark.parametrize("hidden", [LIST_TRANSACTIONS, INIT_PRODUCER_ID])
def test_brokers_without_transactions_are_reported_with_the_option_that_needs_none(
    older: Callable[[int], str], hidden: int
) -> None:
    from pylog_spark.sink.identity import batch_write

    client = {"bootstrap.servers": older(hidden)}
    rows = [pa.record_batch({"value": pa.array([b"a"], pa.binary())})]
    plan = WritePlan(client, "t", {"value": "value"}, batch=batch_write(None, None))

    def save() -> None:
        plan.check()
        plan.write(iter(rows))

    with pytest.raises(PylogError) as caught:
        save()
    assert caught.value.condition == "PYLOG_NO_TRANSACTIONS"
    assert "set the option delivery to at-least-once" in caught.value.sentence
    plain = WritePlan({**client, "enable.idempotence": "false"}, "t", {"value": "value"}, AT_LEAST_ONCE)
    plain.check()
    assert plain.write(iter(rows)).records == 1
