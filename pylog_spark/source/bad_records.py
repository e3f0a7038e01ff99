"""Records that do not parse, written to the topic of `badRecordsTopic`: each position of a source once, whatever is repeated.

A task has no commit, and neither tasks nor micro-batches know what an earlier attempt did. So what counts is what stands in that topic: a
record's key there is the position that it was read from, and a position that has a record gets no other. Two attempts at one position
exclude each other by a transaction under a name that belongs to the log partition they read:

    look        the keys behind the last look are read, up to the last stable offset: mostly nothing is left to write after a replay
    begin       who wrote under this name before is fenced, and what it had not committed is aborted
    look again  up to the end of the log, once no transaction in it is open: nobody adds to it under this name any more
    write       what is missing, and commit

Whoever is fenced begins anew, and finds what the other has written. Nothing is kept but the topic itself: a process remembers how far it
has looked, and the highest offset of each source that it saw there, above which there is nothing to find.
"""

from __future__ import annotations

import json
import logging
import random
import time
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError, from_native, native, native_kind
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.topics import CreateTopicResult, TopicDescription
from pylog_spark.spark.contact import topic_error

if TYPE_CHECKING:
    import pyarrow as pa

    from pylog_spark._native import Client, RecordWriter, TypedRead, _NewTopic

_log = logging.getLogger("pylog_spark")

PREFIX = "pylog-bad."
#: Bytes of records that are kept in memory before they are written.
_MOST_BYTES = 16 * 1024 * 1024
#: After how long brokers abort what a process that was killed had begun; the next one that reads the same partition does so at once.
_TRANSACTION_MS = 60_000
#: A record is larger here than it was by its headers, so what a client may send is no limit; that of the topic is.
_MOST_REQUEST_BYTES = 128 * 1024 * 1024
#: Pauses in seconds after another process took over: half a pause at least, which doubles up to the longest.
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
_POLL_S = 0.02
#: Most sources whose highest offset a process remembers, and most topics of bad records that it remembers any of.
_SOURCES_MAX, _TOPICS_MAX = 100_000, 4
#: Most offsets of one source that a reader gets to know at once.
_OFFSETS_MAX = 4_000_000
_EARLIEST, _LATEST = -2, -1
_OFFSET = b'"offset":'
_UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
#: Errors after which another attempt decides: another process took over, or the brokers were not there for a while.
_AGAIN = frozenset(
    {
        "CONCURRENT_TRANSACTIONS",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "OFFSET_OUT_OF_RANGE",
        "PRODUCER_FENCED",
        "TIMED_OUT",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "UNREACHABLE",
    }
)
_WITHOUT_TRANSACTIONS = frozenset({"UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT"})


@dataclass(frozen=True)
class BadTopic:
    """Where bad records go; plain values, pickled with the reader.

    Attributes
    ----------
    client : mapping of str to str
        Settings of the native client.
    name : str
        The topic.
    """

    client: Mapping[str, str]
    name: str


def _number(text: bytes) -> int | None:
    """An offset; None for what is none. Anybody may write to the topic."""
    return int(text) if text.isdigit() and len(text) < 19 else None


@dataclass
class _Seen:
    """What a process knows of a topic of bad records.

    Attributes
    ----------
    topic_id : str
        The topic's id when it looked.
    ends : dict of int to int
        Partition -> the offset up to which it has looked.
    highest : dict of bytes to int
        Beginning of a key, up to the offset -> the highest offset behind it.
    is_whole : bool
        Whether `highest` has all sources that were seen.
    """

    topic_id: str = ""
    ends: dict[int, int] = field(default_factory=dict)
    highest: dict[bytes, int] = field(default_factory=dict)
    is_whole: bool = True

    def note(self, key: bytes) -> None:
        """Take a key that stands in the topic; one that is no position is passed over."""
        source, _, text = key.removesuffix(b"}").partition(_OFFSET)
        number = _number(text)
        if number is None:
            return
        if source not in self.highest and len(self.highest) >= _SOURCES_MAX:
            self.is_whole = False
            return
        self.highest[source] = max(number, self.highest.get(source, -1))

    def may_have(self, source: bytes, offset: int) -> bool:
        """Whether a key with this offset, or a higher one, may have been seen."""
        return not self.is_whole or offset <= self.highest.get(source, -1)


_seen: dict[tuple[str, str], _Seen] = {}


@dataclass
class _Known:
    """All offsets of one source that stand in the topic, for a reader that comes upon many that may; without it each look for some of them
    would read the topic anew.

    Attributes
    ----------
    source : bytes
        The beginning of its keys; empty when nothing is known.
    offsets : array of int
        In order.
    ends : dict of int to int
        Partition -> the offset up to which it was read for them.
    """

    source: bytes = b""
    offsets: array[int] = field(default_factory=lambda: array("q"))
    ends: dict[int, int] = field(default_factory=dict)

    def note(self, key: bytes) -> None:
        """Take a key that came since."""
        if self.source and key.startswith(self.source) and (offset := _number(key[len(self.source) : -1])) is not None:
            insort(self.offsets, offset)

    def has(self, offset: int) -> bool:
        """Whether an offset stands there."""
        at = bisect_left(self.offsets, offset)
        return at < len(self.offsets) and self.offsets[at] == offset

    def forget(self) -> None:
        """Nothing is known any more."""
        self.source, self.offsets, self.ends = b"", array("q"), {}


class BadRecords:
    """The bad records that one reader came upon, until they are written. Not thread-safe.

    Parameters
    ----------
    to : BadTopic
        Where they go.
    typed : TypedRead
        What keeps them.
    topic_ids : mapping of str to str
        Topic that is read -> its id, or "" where brokers have none.
    """

    def __init__(self, to: BadTopic, typed: TypedRead, topic_ids: Mapping[str, str]) -> None:
        self._to = to
        self._typed = typed
        self._topic_ids = topic_ids
        self._known = _Known()
        self._waiting: list[pa.RecordBatch] = []
        self._found = self._written = 0

    def take(self) -> None:
        """Take what was kept meanwhile, and write it when it is much."""
        import pyarrow as pa

        self._waiting += [pa.record_batch(batch) for batch in self._typed.take_bad()]
        if sum(batch.nbytes for batch in self._waiting) > _MOST_BYTES:
            self._write()

    def finish(self) -> None:
        """Write all that was kept. When this returns, each of these positions has one record in the topic.

        Raises
        ------
        PylogError
            The brokers refused a record, or did not answer in time.
        """
        self.take()
        self._write()
        if self._found:
            _log.warning(
                "found %d records that do not parse; %d of them were written to %s, the others were there already",
                self._found,
                self._written,
                self._to.name,
            )

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        of_source: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        for batch in waiting:
            # Each is of one log partition.
            of_source.setdefault((batch["topic"][0].as_py(), batch["partition"][0].as_py()), []).append(batch)
        if not of_source:
            return
        with closing(_Copies(self._to, self._known)) as copies:
            for (topic, partition), batches in of_source.items():
                rows = _keyed(beginning(topic, self._topic_ids.get(topic, ""), partition), batches)
                self._found += rows.num_rows
                self._written += copies.write(f"{PREFIX}{self._to.name}.{topic}.{partition}", rows)


def beginning(topic: str, topic_id: str, partition: int) -> bytes:
    """Give the beginning of the keys of a log partition's records, which the offset and a brace follow."""
    position = {"topic": topic, **({"topicId": topic_id} if topic_id else {}), "partition": partition}
    return json.dumps(position, separators=(",", ":")).removesuffix("}").encode() + b"," + _OFFSET


def _keyed(source: bytes, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """The rows as they are written, each position once: a reader that lost its place may have come upon one twice."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches)
    keys = [source + b"%d}" % offset for offset in table["offset"].to_pylist()]
    first = {key: number for number, key in reversed(list(enumerate(keys)))}
    named = table.select(["value", "headers", "offset"]).append_column("key", pa.array(keys, pa.binary()))
    return named.take(pa.array(sorted(first.values()), pa.int64()))


class _Copies:
    """Writes to the topic. Belongs to the process that made it."""

    def __init__(self, to: BadTopic, known: _Known) -> None:
        self._topic = to.name
        self._known = known
        self._settings = {**to.client, "isolation.level": "read_committed"}
        self._timeout_s = int(to.client.get("default.api.timeout.ms", "60000")) / 1000
        self._client: Client | None = None
        key = (to.client["bootstrap.servers"], to.name)
        if key not in _seen and len(_seen) >= _TOPICS_MAX:
            _seen.pop(next(iter(_seen)))
        self._seen = _seen.setdefault(key, _Seen())

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def write(self, name: str, rows: pa.Table) -> int:
        """Write those of `rows`, all of one source, that are not there yet, under the transactional id `name`. Returns how many."""
        deadline_s, pause_s = time.monotonic() + self._timeout_s, _PAUSE_S
        while True:
            try:
                return self._attempt(name, rows)
            except Exception as error:
                kind, message = native_kind(error) or ("", "")
                if not kind:
                    raise
                if kind not in _AGAIN or time.monotonic() > deadline_s:
                    raise self._refused(kind, message) from None
                _log.debug("Another attempt to write bad records: %s", message)
            # Two that fence each other must not do so in step.
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _attempt(self, name: str, rows: pa.Table) -> int:
        self._look(until_stable=False)
        rows = self._missing(rows)
        if rows.num_rows == 0:
            return 0
        settings = {
            "max.request.size": str(_MOST_REQUEST_BYTES),
            **self._settings,
            "acks": "all",
            "enable.idempotence": "true",
            "transaction.timeout.ms": str(_TRANSACTION_MS),
        }
        writer = native().RecordWriter(settings, self._topic, transactional_id=name, keep_connections=True)
        with closing(writer):
            writer.begin()
            self._look(until_stable=True)
            rows = self._missing(rows)
            if rows.num_rows:
                _commit(writer, rows.select(["key", "value", "headers"]).to_batches())
        return int(rows.num_rows)

    def _look(self, *, until_stable: bool) -> None:
        """Read the keys that came since the last look."""
        found = self._described()
        partitions = [partition.partition for partition in found.partitions]
        ends = self._ends(partitions, until_stable=until_stable)
        seen = self._seen
        if found.topic_id != seen.topic_id or any(ends.get(each, 0) < end for each, end in seen.ends.items()):
            self._forget(found.topic_id)
        if self._known.ends != seen.ends:
            self._known.forget()
        begins = self._offsets(partitions, _EARLIEST)
        for keys in self._keys({each: (max(begins[each], seen.ends.get(each, 0)), ends[each]) for each in ends}):
            for key in keys:
                if key is not None:
                    seen.note(key)
                    self._known.note(key)
        seen.ends.update(ends)
        if self._known.source:
            self._known.ends = dict(seen.ends)

    def _described(self) -> TopicDescription:
        """The topic, which is made if it does not exist: a broker that does not know of it yet must not pass for an empty topic."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            (found,) = all_decoded(TopicDescription, self._asked().describe_topics([self._topic]))
            if found.error is None:
                return found
            if found.error != _UNKNOWN or time.monotonic() > deadline_s:
                raise topic_error(self._topic, found.error)
            wish: _NewTopic = {"name": self._topic, "num_partitions": -1, "replication_factor": -1, "configs": {}}
            (made,) = all_decoded(CreateTopicResult, self._asked().create_topics([wish]))
            if made.error not in (None, "TOPIC_ALREADY_EXISTS"):
                raise topic_error(self._topic, found.error)
            time.sleep(_POLL_S)

    def _forget(self, topic_id: str) -> None:
        """The topic is another one than before."""
        self._seen.topic_id = topic_id
        self._seen.ends.clear()
        self._seen.highest.clear()
        self._seen.is_whole = True

    def _missing(self, rows: pa.Table) -> pa.Table:
        """Those of `rows` that no record seen so far has as its key."""
        import pyarrow as pa

        keys, offsets = rows["key"].to_pylist(), rows["offset"].to_pylist()
        source = keys[0].partition(_OFFSET)[0]
        if not self._seen.may_have(source, min(offsets)):
            return rows
        if self._learn(source + _OFFSET):
            is_missing = [not self._known.has(offset) for offset in offsets]
        else:
            there = {key for found in self._keys(self._all(), "in", keys) for key in found}
            is_missing = [key not in there for key in keys]
        return rows.filter(pa.array(is_missing, pa.bool_()))

    def _learn(self, source: bytes) -> bool:
        """Get to know the offsets of a source; False where they are too many."""
        known = self._known
        if known.source != source:
            known.forget()
            found = array("q")
            for keys in self._keys(self._all(), "prefix", [source]):
                numbers = (_number(key[len(source) : -1]) for key in keys if key is not None)
                found.extend(number for number in numbers if number is not None)
                if len(found) > _OFFSETS_MAX:
                    return False
            known.source, known.offsets, known.ends = source, array("q", sorted(found)), dict(self._seen.ends)
        return True

    def _all(self) -> dict[int, tuple[int, int]]:
        """Everything up to the ends of the last look."""
        begins = self._offsets(list(self._seen.ends), _EARLIEST)
        return {each: (begins[each], end) for each, end in self._seen.ends.items()}

    def _ends(self, partitions: Sequence[int], *, until_stable: bool) -> dict[int, int]:
        """The last stable offsets; with `until_stable`, once they have reached the present ends of the logs."""
        wanted = self._offsets(partitions, _LATEST, "read_uncommitted") if until_stable else {}
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            stable = self._offsets(partitions, _LATEST)
            behind = [each for each, end in wanted.items() if stable[each] < end]
            if not behind:
                return stable
            if time.monotonic() > deadline_s:
                raise PylogError(
                    "PYLOG_BROKER",
                    f"A transaction in {self._topic}-{behind[0]} is open for more than {self._timeout_s:.0f} s, so that it cannot be known "
                    "which bad records stand there; find it with pylog transaction list and end it.",
                )
            time.sleep(_POLL_S)

    def _offsets(self, partitions: Sequence[int], mark: int, isolation: str = "read_committed") -> dict[int, int]:
        if not partitions:
            return {}
        wanted = [(self._topic, partition, mark) for partition in partitions]
        return {each: offset for _, each, offset, _ in self._asked().list_offsets(wanted, isolation)}

    def _keys(
        self, ranges: Mapping[int, tuple[int, int]], test: str = "", wanted: Sequence[bytes] = ()
    ) -> Iterator[Sequence[bytes | None]]:
        """The keys of committed records in ranges of the partitions, all of them or those that a test of the native reader lets pass."""
        import pyarrow as pa

        full = [(self._topic, each, *bounds, self._seen.topic_id) for each, bounds in ranges.items()]
        full = [each for each in full if each[2] < each[3]]
        if not full:
            return
        topic, partition, start, end, topic_id = full[0]
        reader = native().RangeReader(
            self._settings,
            topic,
            partition,
            start,
            end,
            ["key"],
            topic_id=topic_id,
            then=full[1:],
            keys=[(test, wanted)] if test else [],
            keep_connections=True,
        )
        try:
            while not reader.at_end:
                batch = reader.next_batch(1000)
                if batch is not None:
                    yield pa.record_batch(batch).column(0).to_pylist()
        finally:
            reader.stop()

    def _asked(self) -> Client:
        if self._client is None:
            self._client = native().Client(self._settings)
        return self._client

    def _refused(self, kind: str, message: str) -> PylogError:
        if kind in _WITHOUT_TRANSACTIONS:
            return PylogError(
                "PYLOG_NO_TRANSACTIONS",
                f"The brokers lack what badRecordsTopic needs ({message.rstrip('. ')}); leave it out, and find damaged records by "
                "_corrupt_record.",
            )
        error = from_native(kind, message)
        return PylogError(error.condition, f"Writing bad records to {self._topic}: {error.sentence}")


def _commit(writer: RecordWriter, batches: Iterable[pa.RecordBatch]) -> None:
    try:
        for batch in batches:
            writer.write(batch)
        writer.flush()
        writer.end(True)
    except BaseException:
        try:
            writer.end(False)
        except Exception as error:  # noqa: BLE001 - the attempt fails with its own error
            _log.debug("A transaction could not be aborted: %s", error)
        raise
