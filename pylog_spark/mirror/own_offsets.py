"""A mirror by records, into clusters that give records offsets of their own: Apache Kafka.

A thread copies what is committed in the source, a transaction at a time: records of some partitions, and behind them how far these
are (`positions`). So a record is in the copy once, whenever the mirror, or brokers, are killed. A transaction begins by fencing the one before,
also that of another mirror of the same source, and reads the positions then. What keeps one partition from going on keeps no other: the
partitions are then copied one by one, and that one is tried again later.
"""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.errors import LogError, translated
from pylog_spark.mirror.copies import InCopies, Partition
from pylog_spark.mirror.notices import Notices
from pylog_spark.mirror.positions import TOPIC, WHOLE, Position, Positions
from pylog_spark.mirror.topics import Topic
from pylog_spark.results.decoding import decoded
from pylog_spark.results.mirror import MirroredPartition
from pylog_spark.results.writes import FlushResult
from pylog_spark.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pylog_spark._native import RangeReader, RecordWriter, _Batch

log = logging.getLogger("pylog_spark")

#: A transaction ends when its records have so many bytes, or took so long.
TRANSACTION_BYTES = 16 * 1024 * 1024
TRANSACTION_S = 2.0
#: Pairs of offsets that are kept of a partition, to find where a group goes on in the copy.
PAIRS_MAX = 64
#: How long a partition rests that could not be copied.
_REST_S = 10.0
_PAUSE_S = 0.2
_POLL_MS = 200
_TRANSACTION_TIMEOUT_MS = 60_000
_COLUMNS = ("topic", "partition", "key", "value", "timestamp", "headers")
_GONE = ("OFFSET_OUT_OF_RANGE", "LOG_TRUNCATED")
#: Errors of whole clusters, or of another mirror that came in between: all is tried again.
_OF_ALL = frozenset(
    {
        "UNREACHABLE",
        "TIMED_OUT",
        "CLOSED",
        "TOKEN_UNAVAILABLE",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
    }
)


@dataclass
class _Copied:
    """One partition: its source, how far it is, and pairs (offset in the source, in the copy) that belong together, ascending."""

    topic_id: str
    start: int = -1
    end: int = -1
    position: int = -1
    bytes: int = 0
    error: tuple[str, str] | None = None
    rests_until: float = 0.0
    pairs: list[tuple[int, int]] = field(default_factory=list)

    def pair(self, offset: int, in_copy: int) -> None:
        """Keep a pair; of older ones every other one is forgotten when there are too many."""
        if not self.pairs or self.pairs[-1][0] < offset:
            self.pairs.append((offset, in_copy))
        if len(self.pairs) > PAIRS_MAX:
            half = len(self.pairs) // 2
            self.pairs = self.pairs[:half:2] + self.pairs[half:]

    def in_copy(self, offset: int) -> int | None:
        """The place in the copy before which there is nothing that is behind `offset` in the source."""
        before = bisect_right(self.pairs, (offset, 2**63))
        return self.pairs[before - 1][1] if before else None


class _Held(NamedTuple):
    """A partition of the source, the id of its topic, and offsets there: from `start` up to `end`."""

    at: Partition
    topic_id: str
    start: int
    end: int


class OwnOffsets:
    """See the module, and `copies.Copies`. `begin` before the rest.

    Parameters
    ----------
    source, target : mapping of str to str
        Settings of the client for both.
    source_admin, target_admin : Admin
        Of both; they stay the caller's.
    source_id : str
        The id of the source.
    bytes_per_second : int or None
        Most bytes that are copied in a second.
    notices : Notices
        Takes what the user should know.
    """

    def __init__(
        self,
        source: Mapping[str, str],
        target: Mapping[str, str],
        source_admin: Admin,
        target_admin: Admin,
        source_id: str,
        bytes_per_second: int | None,
        notices: Notices,
    ) -> None:
        self._settings = {**source, "isolation.level": "read_committed"}
        self._target_settings = dict(target)
        self._source, self._target, self._notices = source_admin, target_admin, notices
        self._source_id, self._limit = source_id, bytes_per_second
        self._positions = Positions(target_admin, target, source_id)
        self._lock = threading.Lock()
        # One transaction at a time: the next one fences it.
        self._writing = threading.Lock()
        self._copied: dict[Partition, _Copied] = {}
        self._failure: tuple[str, str] | None = None
        self._one_by_one = 0
        self._turn = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pylog-mirror-records", daemon=True)

    def begin(self) -> None:
        """Read how far an earlier mirror came, and begin. Raises `LogError`."""
        self._positions.make()
        with self._lock:
            self._positions.catch_up()
        self._thread.start()

    def assign(self, topics: Mapping[str, Topic]) -> None:
        """See `Copies`."""
        wanted = {
            (name, index): topic.topic_id for name, topic in topics.items() for index in range(len(topic.leaders))
        }
        with self._lock:
            self._copied = {
                at: known
                if (known := self._copied.get(at)) is not None and known.topic_id == topic_id
                else _Copied(topic_id)
                for at, topic_id in wanted.items()
            }

    def progress(self) -> list[MirroredPartition]:
        """See `Copies`; the ends are offsets of the source: up to where it is copied, and up to where it is committed."""
        with self._lock:
            return [
                MirroredPartition(*at, each.position, each.start, each.end, each.bytes, *(each.error or (None, None)))
                for at, each in self._copied.items()
            ]

    def failures(self) -> Sequence[tuple[str, str]]:
        """See `Copies`."""
        return [self._failure] if self._failure else []

    def take_stale(self) -> bool:
        """See `Copies`: the reader finds leaders by itself."""
        return False

    def create(self, topic: Topic, replication_factor: int) -> None:
        """See `Copies`. That it is a copy is written first: a topic that is there without it is somebody else's."""
        with self._writing:
            writer = self._begun()
            try:
                with translated():
                    writer.write(self._positions.rows({(topic.name, WHOLE): Position(topic.topic_id, 0)}), TOPIC)
                    writer.flush()
                    writer.end(True)
            finally:
                writer.close()
        with self._lock:
            self._positions.catch_up()
        self._target.create_topic(topic.name, len(topic.leaders), replication_factor)

    def owner(self, present: Topic) -> str:
        """See `Copies`."""
        with self._lock:
            return self._source_id if present.name in self._positions.topics() else ""

    def topic_id(self, name: str) -> str | None:
        """See `Copies`."""
        with self._lock:
            return self._positions.topics().get(name)

    def in_copies(self) -> InCopies:
        """See `Copies`: the last pair before the offset, so that nothing is passed over; records behind it may be read again."""
        with self._lock:
            copied = dict(self._copied)
        return lambda at, offset: copied[at].in_copy(offset) if at in copied else None

    def delete_before(self, partitions: Sequence[MirroredPartition]) -> None:
        """See `Copies`: the copies have their own retention."""

    def stop(self) -> None:
        """See `Copies`."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            alone, copied = self._next(), 0
            try:
                copied = self._copy(alone)
                self._failure = None
            except LogError as error:
                self._failed(error, alone)
            except Exception as error:
                log.exception("Copying goes on after an error of the mirror's own.")
                self._failed(LogError("UNKNOWN_SERVER_ERROR", f"Copying met a bug of the mirror: {error!r}."), alone)
                self._stopping.wait(_REST_S)
            if copied and self._limit:
                self._stopping.wait(copied / self._limit - (time.monotonic() - began))
            elif not copied:
                self._stopping.wait(_PAUSE_S)

    def _next(self) -> Partition | None:
        """The partition whose turn it is to be copied alone; None when all are copied together."""
        if not self._one_by_one:
            return None
        self._one_by_one -= 1
        with self._lock:
            waiting = sorted(at for at, each in self._copied.items() if each.rests_until <= time.monotonic())
        self._turn += 1
        return waiting[self._turn % len(waiting)] if waiting else None

    def _failed(self, error: LogError, alone: Partition | None) -> None:
        if self._stopping.is_set():
            return
        with self._lock:
            one = self._copied.get(alone) if alone is not None and error.kind not in _OF_ALL else None
            if one is not None:
                one.error, one.rests_until = (error.kind, error.sentence), time.monotonic() + _REST_S
                return
            self._one_by_one = 0 if error.kind in _OF_ALL else len(self._copied)
        self._failure = (error.kind, error.sentence)

    def _copy(self, alone: Partition | None) -> int:
        """Copy one transaction; gives its bytes, 0 where there was nothing to copy. Raises `LogError`."""
        held = self._held(alone)
        if not self._behind(held):
            return 0
        with self._writing:
            return self._copy_behind(held)

    def _copy_behind(self, held: Sequence[_Held]) -> int:
        writer = self._begun()
        try:
            with self._lock:
                self._positions.catch_up()
            behind = self._behind(held)
            if not behind:
                return 0
            # Another one is the first in each transaction.
            self._turn += 1
            turn = self._turn % len(behind)
            behind = behind[turn:] + behind[:turn]
            reached = self._write(writer, behind)
            if not reached:
                return 0
            with translated():
                written = decoded(FlushResult, writer.flush())
            ids = {part.at: part.topic_id for part in behind}
            positions = {at: self._position(at, ids[at], offset, written) for at, offset in reached.items()}
            with translated():
                writer.write(self._positions.rows(positions), TOPIC)
                writer.flush()
                writer.end(True)
        finally:
            writer.close()
        self._committed({part.at: part.start for part in behind}, positions, written)
        return max(written.bytes, 1)

    def _position(self, at: Partition, topic_id: str, offset: int, written: FlushResult) -> Position:
        span, known = written.offsets.get(TopicPartition(*at)), self._positions.of(*at)
        before = None if known is None else known.in_copy
        return Position(topic_id, offset, before if span is None else span.last + 1)

    def _begun(self) -> "RecordWriter":
        """A writer of this mirror's, in a new transaction; what was open before is aborted."""
        from pylog_spark._native import RecordWriter

        settings = {"acks": "all", **self._target_settings, "transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS)}
        with translated():
            writer = RecordWriter(settings, transactional_id=f"pylog-mirror-{self._source_id}", keep_connections=True)
            try:
                writer.begin()
            except BaseException:
                writer.close()
                raise
        return writer

    def _held(self, alone: Partition | None) -> list[_Held]:
        """What the source holds and has committed of the partitions that do not rest. Raises `LogError`."""
        now = time.monotonic()
        with self._lock:
            places = {
                at: each.topic_id
                for at, each in self._copied.items()
                if each.rests_until <= now and alone in (None, at)
            }
        if not places:
            return []
        starts = self._source.offsets([(*at, EARLIEST) for at in places])
        ends = self._source.offsets([(*at, LATEST) for at in places], "read_committed")
        return [
            _Held(at := (end.topic, end.partition), places[at], start.offset, end.offset)
            for start, end in zip(starts, ends, strict=True)
        ]

    def _behind(self, held: Sequence[_Held]) -> list[_Held]:
        """What of that is not copied, by what is known of the positions."""
        behind = []
        with self._lock:
            for part in held:
                each, known = self._copied.get(part.at), self._positions.of(*part.at)
                if each is None or each.topic_id != part.topic_id:
                    continue
                position = known.offset if known is not None and known.topic_id == part.topic_id else part.start
                if position < part.start:
                    name = f"{part.at[0]}-{part.at[1]}"
                    self._notices.once(
                        f"lost {name}",
                        f"{name}: offsets {position} to {part.start - 1} were deleted in the source before they were copied",
                    )
                    position = part.start
                each.start, each.end, each.position = part.start, part.end, position
                if known is not None and known.in_copy is not None:
                    each.pair(known.offset, known.in_copy)
                if position < part.end:
                    behind.append(part._replace(start=position))
        return behind

    def _write(self, writer: "RecordWriter", behind: Sequence[_Held]) -> dict[Partition, int]:
        """Write records of these ranges until there are enough; gives how far each is. Raises `LogError`."""
        from pylog_spark._native import RangeReader

        ranges = [(*part.at, part.start, part.end, part.topic_id) for part in behind]
        (topic, partition, start, end, topic_id), *then = ranges
        with translated():
            reader = RangeReader(
                self._settings,
                topic,
                partition,
                start,
                end,
                _COLUMNS,
                topic_id=topic_id,
                then=then,
                keep_connections=True,
            )
        try:
            for batch in self._batches(reader):
                with translated():
                    writer.write(batch)
            self._check(reader)
            done = reader.range_index
            reached = {part.at: part.end for part in behind[:done]}
            if done < len(behind):
                part = behind[done]
                if (offset := part.end if reader.at_end else reader.next_offset) > part.start:
                    reached[part.at] = offset
            return reached
        finally:
            reader.stop()

    def _batches(self, reader: "RangeReader") -> Iterator["_Batch"]:
        until = time.monotonic() + TRANSACTION_S
        while reader.bytes_fetched < TRANSACTION_BYTES and time.monotonic() < until and not self._stopping.is_set():
            with translated():
                batch = reader.next_batch(_POLL_MS)
            if batch is not None:
                yield batch
            elif reader.at_end or reader.error:
                return

    @staticmethod
    def _check(reader: "RangeReader") -> None:
        # What was deleted while it was read is found when the range is planned anew.
        if reader.error and reader.error[0] not in _GONE:
            raise LogError(*reader.error)

    def _committed(
        self, starts: Mapping[Partition, int], positions: Mapping[Partition, Position], written: FlushResult
    ) -> None:
        """Keep which offsets belong together, and how far all is."""
        with self._lock:
            for at, position in positions.items():
                if (each := self._copied.get(at)) is None:
                    continue
                if (span := written.offsets.get(TopicPartition(*at))) is not None:
                    each.pair(starts[at], span.first)
                if position.in_copy is not None:
                    each.pair(position.offset, position.in_copy)
                each.position, each.error = position.offset, None
                each.bytes += written.bytes // len(positions)
