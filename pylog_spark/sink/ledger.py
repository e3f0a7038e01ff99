"""The decisions, at the brokers: creates and reads the topics that keep them, which only the driver that is not fenced writes.

A record is believed only where it belongs: one about a key of another ledger is passed over, since whoever wrote it had no right to that.

A `Ledger` holds sockets and belongs to the process that made it.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError, from_native, native, translated
from pylog_spark.results.decoding import Decoded, all_decoded
from pylog_spark.results.topics import CreateTopicResult, TopicDescription
from pylog_spark.results.transactions import (
    EndTransactionResult,
    FenceProducerResult,
    TransactionDescription,
    TransactionListing,
)
from pylog_spark.sink.decision import PARTITIONS, TOPIC, TOPIC_CONFIGS, Decision, decode, encode, partition_of, topic_of
from pylog_spark.sink.faults import requested, translating
from pylog_spark.sink.identity import Write, pattern_of
from pylog_spark.sink.protocol import OPEN
from pylog_spark.spark.contact import Answer, until_reachable

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import Client, _NewTopic

#: Milliseconds that a driver may take between storing a decision and committing it. Drivers whose decisions are in the same
#: partition wait that long for one that died in between.
DRIVER_TIMEOUT_MS = 10_000
#: Most writes that are done, the newest ones, that one process remembers.
_DROPPED_MAX = 10_000
_POLL_S = 0.02
_ANY_AGE = -1
_EARLIEST, _LATEST = -2, -1
_COLUMNS = ("key", "value")
#: Topic and partition.
_Place = tuple[str, int]
#: Settings of the user's client that are for the user's records and not for decisions.
_NOT_FOR_DECISIONS = ("compression.type", "transaction.timeout.ms", "linger.ms", "batch.size", "isolation.level")


class Ledger:
    """The decisions that this process has read, and requests about transactions.

    Parameters
    ----------
    client : mapping of str to str
        Settings of the native client.
    waits : bool
        Whether the first request already waits for brokers that do not answer, as in a running write. Without it, as for an
        administrator's command, it is an error at once.
    """

    def __init__(self, client: Mapping[str, str], *, waits: bool = False) -> None:
        self._config = {name: text for name, text in client.items() if name not in _NOT_FOR_DECISIONS}
        self._config["allow.auto.create.topics"] = "false"
        self._timeout_s = int(client.get("default.api.timeout.ms", "60000")) / 1000
        self._first_wait_s = self._timeout_s if waits else 0.0
        with translated():
            self._client = native().Client(self._config)
        self._topic_ids: dict[str, str] = {}
        self._read: dict[_Place, int] = {}
        self._known: dict[_Place, dict[str, Decision]] = {}
        self._dropped: dict[str, None] = {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def check(self) -> None:
        """Check that the brokers have transactions, and can list the open ones.

        Raises
        ------
        PylogError
            ``PYLOG_NO_TRANSACTIONS``.
        """
        with translated(requested):
            self._client.request("list_transactions", json.dumps(_open_ones("")))

    def ensure(self, key: str = "") -> None:
        """Create the topic that keeps the decisions about `key` if it does not exist, and wait until it can be written to. Several processes
        may do that at once."""
        topic = topic_of(key)
        deadline = time.monotonic() + self._timeout_s
        wish: _NewTopic = {
            "name": topic,
            "num_partitions": PARTITIONS,
            "replication_factor": -1,
            "configs": dict(TOPIC_CONFIGS),
        }
        while not self._is_there(topic):
            (answer,) = self._ask(lambda client: all_decoded(CreateTopicResult, client.create_topics([wish])))
            if answer.error not in (None, "TOPIC_ALREADY_EXISTS"):
                raise PylogError(
                    "PYLOG_SINK_STATE",
                    f"The topic {topic}, where exactly-once writes keep their decisions, cannot be made: "
                    f"{(answer.message or answer.error).rstrip('.')}; make it ({PARTITIONS} partitions, cleanup.policy=compact), "
                    "with rights to READ and WRITE it, or set delivery to at-least-once.",
                )
            if time.monotonic() > deadline:
                raise PylogError(
                    "PYLOG_SINK_STATE", f"The topic {topic} was created and has no leaders yet; try again."
                )
            time.sleep(_POLL_S)

    def decision(self, key: str, *, until_stable: bool) -> Decision | None:
        """Give the last decision about `key`.

        Parameters
        ----------
        key : str
            The write's key.
        until_stable : bool
            Wait until every transaction that was in the log at the time of the call has ended. Without it, a decision that is just
            being stored is missed, and so are those behind it.
        """
        place = self._place(key)
        self._catch_up(place, until_stable=until_stable)
        return self._known.get(place, {}).get(key)

    def is_dropped(self, key: str) -> bool:
        """Whether `decision` has read the tombstone of `key`: the write is done. The tombstone stays for `delete.retention.ms`."""
        return key in self._dropped

    def neighbours(self, key: str) -> list[Decision]:
        """Give all decisions in the partition that keeps the decision about `key`."""
        return list(self._known.get(self._place(key), {}).values())

    def everything(self) -> list[Decision]:
        """Give the last decisions about all keys, of all ledgers that the client may see."""
        listed = self._ask(lambda client: client.list_partitions(None))
        for topic in [TOPIC, *(name for name, *_ in listed if name.startswith(f"{TOPIC}."))]:
            for partition in range(PARTITIONS):
                self._catch_up((topic, partition), until_stable=False)
        return [decision for known in self._known.values() for decision in known.values()]

    def driver(self, write: Write) -> Driver:
        """Become the driver of `write`: all others are fenced, and a record that the last one was storing is committed or aborted."""
        return until_reachable(lambda: Driver(self._config, write, self._place(write.key)), self._first_wait_s)

    def open_transactions(self, key: str | None = None, longer_than_ms: int = _ANY_AGE) -> list[str]:
        """Give the transactional ids of tasks of `key`, or of all keys, whose transactions are open; with `longer_than_ms` only those
        that have been open for longer, by the brokers' clocks."""
        wanted = _open_ones(key, longer_than_ms)
        return [listing.transactional_id for listing in self._request(TransactionListing, "list_transactions", wanted)]

    def open_of_anybody(self, longer_than_ms: int) -> list[str]:
        """Give all transactional ids, the sink's and others, whose transactions have been open for longer than `longer_than_ms`."""
        wanted = {**_open_ones(None, longer_than_ms), "pattern": None}
        return [listing.transactional_id for listing in self._request(TransactionListing, "list_transactions", wanted)]

    def describe(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """Give what the brokers know of transactions, by transactional id."""
        if not transactional_ids:
            return {}
        names = {"names": list(transactional_ids)}
        found = self._request(TransactionDescription, "describe_transactions", names)
        return {description.transactional_id: description for description in found}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Give the ids of those of `topics` that exist, where brokers have ids. Any topics, not only the sink's."""
        names = sorted(topics)
        found = self._describe(names) if names else []
        return {topic.name: topic.topic_id for topic in found if topic.error is None and topic.topic_id}

    def end(self, transactions: Sequence[tuple[str, int, int]], *, commit: bool) -> list[EndTransactionResult]:
        """Commit or abort transactions and wait until their markers are written."""
        if not transactions:
            return []
        timeout_ms = int(self._timeout_s * 1000)
        wanted = list(transactions)
        return self._ask(
            lambda client: all_decoded(EndTransactionResult, client.end_transactions(wanted, commit, timeout_ms))
        )

    def fence(self, transactional_ids: Sequence[str]) -> None:
        """Abort open transactions whose producers are not known. It is no error when one has ended meanwhile."""
        if transactional_ids:
            self._request(FenceProducerResult, "fence_producers", {"names": list(transactional_ids)})

    def _request(self, kind: type[Decoded], name: str, arguments: Mapping[str, object]) -> list[Decoded]:
        return self._ask(lambda client: all_decoded(kind, client.request(name, json.dumps(arguments))), requested)

    def _describe(self, topics: Sequence[str]) -> list[TopicDescription]:
        return self._ask(lambda client: all_decoded(TopicDescription, client.describe_topics(topics)))

    def _ask(self, question: Callable[[Client], Answer], to: Callable[[str, str], PylogError] = from_native) -> Answer:
        def translating() -> Answer:
            with translated(to):
                return question(self._client)

        return until_reachable(translating, self._first_wait_s)

    def _place(self, key: str) -> _Place:
        raw = key.encode()
        return topic_of(key), partition_of(raw, native().murmur2(raw))

    def _is_there(self, topic: str) -> bool:
        (found,) = self._describe([topic])
        if found.error not in (None, "UNKNOWN_TOPIC_OR_PARTITION"):
            return False
        if found.topic_id != self._topic_ids.get(topic, ""):
            self._topic_ids[topic] = found.topic_id
            self._forget(topic)
        if found.error is not None:
            return False
        if len(found.partitions) < PARTITIONS:
            raise PylogError(
                "PYLOG_SINK_STATE",
                f"The topic {topic} has {len(found.partitions)} partitions and exactly-once writes need {PARTITIONS}; add some.",
            )
        return all(partition.leader >= 0 for partition in found.partitions)

    def _catch_up(self, place: _Place, *, until_stable: bool) -> None:
        topic, _ = place
        start = self._read.get(place)
        if start is None:
            if not self._is_there(topic):
                return
            start = self._offset(place, _EARLIEST, "read_uncommitted")
        end = self._end(place, until_stable=until_stable)
        if end < start:  # the topic was recreated: what was read before is not in it
            self._forget(topic)
            self._catch_up(place, until_stable=until_stable)
            return
        known = self._known.setdefault(place, {})
        for raw, value in self._records(place, start, end):
            key = raw.decode(errors="replace")
            if topic_of(key) != topic:
                continue
            if value is None:
                known.pop(key, None)
                self._drop(key)
            else:
                known[key] = decode(raw, value)
                self._dropped.pop(key, None)
        self._read[place] = end

    def _forget(self, topic: str) -> None:
        """Drop everything that was read of a topic, because it was in another one of that name."""
        for kept in (self._read, self._known):
            for place in [place for place in kept if place[0] == topic]:
                del kept[place]
        self._dropped = {key: None for key in self._dropped if topic_of(key) != topic}

    def _drop(self, key: str) -> None:
        self._dropped[key] = None
        if len(self._dropped) > _DROPPED_MAX:
            self._dropped.pop(next(iter(self._dropped)))

    def _end(self, place: _Place, *, until_stable: bool) -> int:
        """Give the last stable offset; with `until_stable`, wait until it has reached the present end of the log."""
        if not until_stable:
            return self._offset(place, _LATEST, "read_committed")
        wanted = self._offset(place, _LATEST, "read_uncommitted")
        deadline = time.monotonic() + self._timeout_s
        while (stable := self._offset(place, _LATEST, "read_committed")) < wanted:
            if time.monotonic() > deadline:
                raise PylogError(
                    "PYLOG_SINK_STATE",
                    f"A transaction in {place[0]}-{place[1]} is open for more than {self._timeout_s:.0f} s, so that decisions behind it "
                    f"cannot be read; find it with pylog transaction list and end it.",
                )
            time.sleep(_POLL_S)
        return stable

    def _offset(self, place: _Place, time_ms: int, isolation: str) -> int:
        wanted = [(*place, time_ms)]
        ((_, _, offset, _),) = self._ask(lambda client: client.list_offsets(wanted, isolation))
        return offset

    def _records(self, place: _Place, start: int, end: int) -> Iterator[tuple[bytes, bytes | None]]:
        if start >= end:
            return
        import pyarrow as pa

        config = {**self._config, "isolation.level": "read_committed"}
        with translated():
            reader = native().RangeReader(config, *place, start, end, list(_COLUMNS))
            try:
                while not reader.at_end:
                    batch = reader.next_batch(1000)
                    if batch is not None:
                        table = pa.record_batch(batch)
                        yield from zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)
            finally:
                reader.stop()


def _open_ones(key: str | None, longer_than_ms: int = _ANY_AGE) -> dict[str, object]:
    return {"states": [OPEN], "producer_ids": [], "duration_ms": longer_than_ms, "pattern": pattern_of(key)}


class Driver:
    """The only driver that may store a decision about a write, until a newer one fences it. Raises ``PYLOG_SINK_FENCED`` afterwards."""

    def __init__(self, config: Mapping[str, str], write: Write, place: _Place) -> None:
        self._write = write
        topic, self._partition = place
        config = {**config, "linger.ms": "0", "transaction.timeout.ms": str(DRIVER_TIMEOUT_MS)}
        with translating(write):
            self._writer = native().RecordWriter(config, topic, transactional_id=write.driver_id)
            try:
                self._writer.begin()
            except BaseException:
                self._writer.close()
                raise

    def store(self, decision: Decision | None) -> None:
        """Store a decision, or with None drop the last one. When this returns it is stored; when this fails it may be stored."""
        with translating(self._write):
            self._writer.write(self._record(encode(decision) if decision else None))
            self._writer.flush()
            self._writer.end(True)

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()

    def _record(self, value: bytes | None) -> pa.RecordBatch:
        import pyarrow as pa

        columns = {
            "key": _binary(self._write.key.encode()),
            "value": _binary(value),
            "partition": pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(struct.pack("=i", self._partition))]),
        }
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _binary(value: bytes | None) -> pa.Array:
    """An array of one value. `pyarrow.array` would import pandas at its first call: a second, where it is installed."""
    import pyarrow as pa

    present, bounds = pa.py_buffer(b"\0" if value is None else b"\1"), struct.pack("=2i", 0, len(value or b""))
    return pa.Array.from_buffers(pa.binary(), 1, [present, pa.py_buffer(bounds), pa.py_buffer(value or b"")])
