"""Whom a long attack is made on: a fresh broker of pylog, or of Apache Kafka, as a real process with its default settings.

Both have the same topics: "attacked" (with one batch in it that opens to much), "empty", "compacted", and "honest" for the client
that is judged. Nothing is deleted by its age there: many records of an attack are of 1970.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pylog_spark.testing import LocalBroker
from tests.harness.waiting import pause
from tests.hostile.batches import error_code, produce_request
from tests.hostile.floods import MIB, NONE, answer, connect, until_coordinators_serve
from tests.hostile.neighbour import Address
from tests.hostile.together import swollen
from tests.interop.clients import create_topic

if TYPE_CHECKING:
    from tests.peers.kafka import KafkaBroker

_KEPT_FOREVER = {"retention.ms": "-1"}
#: What an attack writes to "attacked" does not fill the disk in an hour.
_ROLLED = {"segment.bytes": str(16 * MIB), "retention.bytes": str(64 * MIB), "file.delete.delay.ms": "1000"}
#: What is produced there is compacted as soon as the cleaner looks.
_COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(MIB), "min.cleanable.dirty.ratio": "0.01"}
TOPICS = {
    "attacked": {**_KEPT_FOREVER, **_ROLLED},
    "empty": {},
    "compacted": _COMPACTED,
    "honest": _KEPT_FOREVER,
}
_LOOK_S = 1.0
_TAIL = 3_000


class Victim(Protocol):
    """A broker that runs."""

    @property
    def address(self) -> Address:
        """Where it is."""

    @property
    def running(self) -> bool:
        """Whether its process lives."""

    def panics(self) -> dict[str, int]:
        """How many lines of its log say that something in it broke, by what they say."""

    def tail(self) -> str:
        """The end of its log."""

    def kill(self) -> None:
        """End it at once."""


class _Pylog:
    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self.address = Address(broker.host, broker.port, broker.pid)

    @property
    def running(self) -> bool:
        return self._broker.running

    def panics(self) -> dict[str, int]:
        return {"panicked": self._broker.logs().count("panicked at")}

    def tail(self) -> str:
        return self._broker.logs()[-_TAIL:]

    def kill(self) -> None:
        self._broker.kill()


class _Log:
    """Reads what Apache Kafka appends to its log, counts, and throws it away: under attack it would fill the disk in an hour."""

    _WORDS = ("] ERROR ", "OutOfMemoryError")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tail = ""
        self._counts = dict.fromkeys(self._WORDS, 0)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-log", daemon=True)
        self._thread.start()

    def counts(self) -> dict[str, int]:
        self._read()
        return {word.strip("] "): count for word, count in self._counts.items()}

    def tail(self) -> str:
        self._read()
        return self._tail

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not pause(self._over, _LOOK_S):
            self._read()

    def _read(self) -> None:
        with self._lock, open(self._path, "r+b") as log:
            text = log.read().decode(errors="replace")
            # It is written at its end, wherever that is; a line of this moment may get lost.
            log.truncate(0)
            for word in self._WORDS:
                self._counts[word] += text.count(word)
            self._tail = (self._tail + text)[-_TAIL:]


class _Kafka:
    def __init__(self, broker: "KafkaBroker", log: _Log) -> None:
        self._broker, self._log = broker, log
        self.address = Address("127.0.0.1", broker.port, broker.pid)

    @property
    def running(self) -> bool:
        return self._broker.running

    def panics(self) -> dict[str, int]:
        return self._log.counts()

    def tail(self) -> str:
        return self._log.tail()

    def kill(self) -> None:
        self._broker.kill()


@contextmanager
def pylog(folder: Path) -> Iterator[Victim]:
    """pylog's broker, with all topics and coordinators."""
    with LocalBroker(folder / "data") as broker:
        victim = _Pylog(broker)
        _prepare(victim.address)
        yield victim


@contextmanager
def kafka(folder: Path) -> Iterator[Victim]:
    """Apache Kafka's, with a heap of 1 GiB, which is the default of its scripts."""
    # Imported when needed: it looks for Java.
    from tests.peers.kafka import KafkaBroker

    with KafkaBroker(folder) as broker:
        log = _Log(folder / "broker.log")
        try:
            victim = _Kafka(broker, log)
            _prepare(victim.address)
            yield victim
        finally:
            log.close()


def _prepare(address: Address) -> None:
    servers = f"{address.host}:{address.port}"
    for name, config in TOPICS.items():
        create_topic(servers, name, config=config)
    with connect(address) as sock:
        until_coordinators_serve(sock)
        sock.sendall(produce_request("attacked", swollen()))
        code = error_code(answer(sock), "attacked")
    if code != NONE:
        raise RuntimeError(f"The batch that opens to much was refused with error {code}.")
