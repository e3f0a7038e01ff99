"""What can happen to the files of a broker that is stopped, and what is left of the records then.

A *place* is a file (or folder) of a partition or of the data folder; a *harm* is what is done to it. `SCENE` is what is written to
each partition: transactions, one after the other, the even ones committed and the odd ones aborted, about one for each segment.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from pylog_spark.client import Consumer
from pylog_spark.client.errors import LogError
from pylog_spark.testing import LocalBroker

#: Transactions of each partition; records of each; offsets that each takes, with its marker.
ROUNDS, RECORDS, OFFSETS = 8, 2, 3
#: After so many the broker was stopped cleanly once: all before is known to be on the device, whatever happens later.
FLUSHED_ROUNDS = 5
END = ROUNDS * OFFSETS
#: A segment holds one transaction, and the index an entry for each batch.
TOPIC_CONFIG = {"segment.bytes": "200", "index.interval.bytes": "1"}
#: A client that gives up soon what is not there, and one that waits for what is.
QUICK = {"default.api.timeout.ms": "500"}
PATIENT = {"default.api.timeout.ms": "30000"}
QUICK_WRITES = {"delivery.timeout.ms": "3000", "request.timeout.ms": "2000"}


@dataclass(frozen=True)
class Place:
    """A file of a partition's folder: `find` gives it; `there` says whether it exists in a whole log."""

    name: str
    find: Callable[[Path], Path]
    there: bool = True


def _numbered(ending: str, number: int) -> Callable[[Path], Path]:
    return lambda folder: sorted(folder.glob(f"*.{ending}"))[number]


def _beside(ending: str) -> Callable[[Path], Path]:
    """A name that compaction or retention gives a file of the second segment."""
    return lambda folder: Path(f"{_numbered('log', 1)(folder)}{ending}")


FOLDER = Place("the folder", lambda folder: folder)
PLACES = (
    Place("the first .log", _numbered("log", 0)),
    Place("a middle .log", _numbered("log", 3)),
    Place("the active .log", _numbered("log", -1)),
    Place("the first .index", _numbered("index", 0)),
    Place("the active .index", _numbered("index", -1)),
    Place("the first .timeindex", _numbered("timeindex", 0)),
    Place("the active .timeindex", _numbered("timeindex", -1)),
    Place("the first .txnindex", _numbered("txnindex", 0)),
    Place("the last .txnindex", _numbered("txnindex", -1)),
    Place("the first .snapshot", _numbered("snapshot", 0)),
    Place("the last .snapshot", _numbered("snapshot", -1)),
    Place("leader-epoch-checkpoint", lambda folder: folder / "leader-epoch-checkpoint"),
    Place("partition.metadata", lambda folder: folder / "partition.metadata"),
    Place("a .swap", _beside(".swap"), there=False),
    Place("a .cleaned", _beside(".cleaned"), there=False),
    Place("a .deleted", _beside(".deleted"), there=False),
    Place("an unknown file", lambda folder: folder / "notes.txt", there=False),
    FOLDER,
)


@dataclass(frozen=True)
class Harm:
    """What is done: `do` has the path and the same file of another partition. `needs` a file that is there."""

    name: str
    do: Callable[[Path, Path], None]
    needs: bool = True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _missing(path: Path, _other: Path) -> None:
    _remove(path)


def _empty(path: Path, _other: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
        path.mkdir()
    else:
        path.write_bytes(b"")


def _truncated(path: Path, _other: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flipped(path: Path, _other: Path) -> None:
    held = bytearray(path.read_bytes())
    if held:
        held[len(held) // 2] ^= 0x10
    path.write_bytes(held)


def _foreign(path: Path, other: Path) -> None:
    _remove(path)
    if other.is_dir():
        shutil.copytree(other, path)
    else:
        shutil.copy(other, path)


def _symlink(path: Path, other: Path) -> None:
    """A link to the very file, or to that of another partition where there is none."""
    aside = path.with_name(f"aside-{path.name}")
    if path.exists():
        path.rename(aside)
    else:
        shutil.copy(other, aside)
    path.symlink_to(aside)


def _directory(path: Path, _other: Path) -> None:
    _remove(path)
    path.mkdir()


def _file(path: Path, _other: Path) -> None:
    _remove(path)
    path.write_bytes(b"a file")


HARMS = (
    Harm("missing", _missing),
    Harm("empty", _empty, needs=False),
    Harm("truncated", _truncated),
    Harm("one bit flipped", _flipped),
    Harm("of another partition", _foreign, needs=False),
    Harm("a symbolic link", _symlink, needs=False),
    Harm("a directory", _directory, needs=False),
)
_OF_FOLDERS = (HARMS[0], HARMS[1], HARMS[4], HARMS[5], Harm("a file", _file))

#: All cases of a partition's files.
CASES = tuple(
    (place, harm)
    for place in PLACES
    for harm in (_OF_FOLDERS if place is FOLDER else HARMS)
    if place.there or not harm.needs
)


def values(partition: int, rounds: range, *, committed: bool) -> list[tuple[int, bytes]]:
    """The records of a partition, with their offsets."""
    return [
        (number * OFFSETS + record, b"%d.%d.%d" % (partition, number, record))
        for number in rounds
        for record in range(RECORDS)
        if not committed or number % 2 == 0
    ]


def write(broker: LocalBroker, topic: str, partitions: int, rounds: range) -> None:
    """Write these transactions to every partition."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": topic,
            "linger.ms": 5,
            "partitioner": "murmur2",
        }
    )
    producer.init_transactions()
    for number in rounds:
        producer.begin_transaction()
        for partition in range(partitions):
            for record in range(RECORDS):
                producer.produce(topic, b"%d.%d.%d" % (partition, number, record), partition=partition)
        producer.flush()
        if number % 2 == 0:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def delete_before(broker: LocalBroker, topic: str, offset: int) -> None:
    """Let partition 0 begin at `offset`."""
    from pylog_spark._native import Client

    client = Client({"bootstrap.servers": broker.bootstrap_servers})
    try:
        (answer,) = client.delete_records([(topic, 0, offset)])
    finally:
        client.close()
    assert answer["error"] is None, answer


def read(
    broker: LocalBroker, topic: str, partition: int, isolation: str, config: Mapping[str, str] = QUICK
) -> tuple[list[tuple[int, bytes | None]], LogError | None]:
    """The records of a partition up to its end or to the first error, and that error.

    A busy machine may leave a quick client without an answer: it counts where the broker's log names the partition; else the client is
    patient.
    """
    found = _read(broker, topic, partition, isolation, config)
    if found[1] is None or any(lines_of(broker, f"{topic}-{partition}")):
        return found
    return _read(broker, topic, partition, isolation, PATIENT)


def _read(
    broker: LocalBroker, topic: str, partition: int, isolation: str, config: Mapping[str, str]
) -> tuple[list[tuple[int, bytes | None]], LogError | None]:
    seen: list[tuple[int, bytes | None]] = []
    settings = {**config, "isolation.level": isolation}
    try:
        with Consumer(
            broker.bootstrap_servers, topic, partitions=[partition], start="earliest", follow=False, config=settings
        ) as consumer:
            seen.extend((record.offset, record.value) for record in consumer)
    except LogError as error:
        return seen, error
    return seen, None


def lines_of(broker: LocalBroker, partition: str) -> Iterator[str]:
    """The lines of the broker's log that name the partition, once each."""
    name = f"{partition}"
    for line in broker.logs().splitlines():
        if f"{name}:" in line or f"/{name}/" in line or f"{name} " in line or line.endswith(name):
            yield line


#: Files of the data folder with entries for all logs.
DATA_PLACES = (
    Place("the recovery points", lambda data: data / "recovery-point-offset-checkpoint"),
    Place("the log starts", lambda data: data / "log-start-offset-checkpoint"),
    Place("the high watermarks", lambda data: data / "replication-offset-checkpoint", there=False),
    Place("meta.properties", lambda data: data / "meta.properties"),
    Place("the inventory", lambda data: data / "clean-stop-inventory"),
    Place("the mark of a clean stop", lambda data: data / ".kafka_cleanshutdown", there=False),
    Place("an unknown file", lambda data: data / "notes.txt", there=False),
)
DATA_CASES = tuple((place, harm) for place in DATA_PLACES for harm in HARMS if place.there or not harm.needs)
