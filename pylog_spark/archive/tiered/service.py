"""The threads of a broker's archive, from the broker's start to its stop.

``pylog-archive``           copies, every `remote.log.manager.task.interval.ms`, and when records are to be deleted
``pylog-archive-known-N``   read what the archive has when this broker becomes the leader of a partition
``pylog-archive-read-N``    answer clients, with a lower priority than the broker's other threads

An archive that cannot be reached stops nobody else: the broker serves what it has, deletes nothing that is to be archived, says so in its log
and tries again. Thread-safe.
"""

from __future__ import annotations

import contextvars
import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pylog_spark._native import BrokerArchives, NativeError
from pylog_spark.archive.store.copying import CopyOptions
from pylog_spark.archive.store.layout import StoredTopic
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.root import open_root
from pylog_spark.archive.tiered.broker import Partition, Question, led_partitions
from pylog_spark.archive.tiered.copier import Copier, CopierSettings
from pylog_spark.archive.tiered.counting import ArchiveCounts, ArchivedTopic, Counting
from pylog_spark.archive.tiered.known import KnownArchive, Size
from pylog_spark.archive.tiered.reader import ArchiveReader
from pylog_spark.archive.tiered.removing import Removals
from pylog_spark.archive.tiered.sweeping import Cluster, Sweeper
from pylog_spark.client.errors import LogError

log = logging.getLogger("pylog.broker.archive")

_WAIT_MS = 1_000
#: Partitions of which is read at once what the archive has.
_LEARNERS = 4
#: Seconds that a broker that stops waits for these threads; one that waits for the store for longer ends with the process.
_STOP_S = 5.0
#: Seconds before an archive is tried again that could not be opened.
_RETRY_S = 2.0
#: How much nicer than the broker's own threads those are that answer clients: who reads and writes new records does not wait for zstandard.
_NICE, _NICEST = 10, 19
#: Of mallopt(3), and from which size on a buffer is one of the system.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BYTES = 1 << 20
#: Every so many turns it is looked for what deleted topics have left.
_TURNS_PER_SWEEP = 10


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The settings of a broker's archive, as `broker_native/settings/src/archive.rs` declares them.

    Attributes
    ----------
    url : str
        Where it is.
    level, segment_bytes : int
        zstandard's level, and bytes of an object.
    long_range : bool
        Whether zstandard looks for what repeats at long distances.
    interval_ms : int
        Between two turns of copying.
    bytes_per_second : int
        Most bytes that are copied.
    readers : int
        Threads that answer clients.
    cache_bytes : int
        What is kept for them.
    """

    url: str
    level: int
    segment_bytes: int
    long_range: bool
    interval_ms: int
    bytes_per_second: int
    readers: int
    cache_bytes: int


def _give_back_what_is_freed() -> None:
    """Let the system have large buffers back as soon as they are freed, with glibc.

    By itself glibc takes buffers of up to 32 MiB from heaps of its own, one for each thread, once it has seen some: a broker that reads its archive then
    stays at 150 MiB and more. With this bound it stayed below 100 and was as quick; a bound of 256 KiB made it a third slower. Other C libraries do not need it.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, 4 * _LARGE_BYTES)


def _be_nice() -> None:
    """Let this thread run behind the broker's others where processors are short; on Linux alone a thread has a priority of its own."""
    if sys.platform == "linux":
        of_process = os.getpriority(os.PRIO_PROCESS, os.getpid())
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(of_process + _NICE, _NICEST))


class ArchiveService:
    """Keeps a broker's archive, from `start` to `close`.

    Parameters
    ----------
    archives : BrokerArchives
        The broker.
    settings : ArchiveSettings
        How.
    cluster : Cluster
        What is known of the cluster.
    topic_of : callable
        Gives a topic of the cluster by its name, as it is written into the archive; None when it is gone.
    archived : sequence of str
        The topics that were archived before the broker started: where there are any, no new archive is made. A place that is empty is
        another one then, or a disk that is not mounted, and a log that begins where it was archived up to would begin a second time there.
    """

    def __init__(
        self,
        archives: BrokerArchives,
        settings: ArchiveSettings,
        cluster: Cluster,
        topic_of: Callable[[str], StoredTopic | None],
        archived: Sequence[str],
    ) -> None:
        self._archives, self._settings, self._cluster, self._topic_of = archives, settings, cluster, topic_of
        self._archived = archived
        self._closing, self._due = threading.Event(), threading.Event()
        self._counting = Counting()
        self._threads: list[threading.Thread] = []
        self._measured: tuple[KnownArchive, Removals] | None = None
        self._claiming, self._claimed = threading.Lock(), set[tuple[str, int]]()

    @property
    def counts(self) -> ArchiveCounts:
        """What was done since the start."""
        return self._counting.now

    def topics(self) -> dict[str, ArchivedTopic]:
        """What the archive has of the partitions that are led here, by topic; nothing before it was opened. Raises `NativeError`."""
        if self._measured is None:
            return {}
        known, removals = self._measured
        sizes, lag = known.sizes(led_partitions(self._archives)), removals.lag()
        return {
            topic: ArchivedTopic(*sizes.get(topic, Size(0, 0, 0)), *lag.get(topic, (0, 0)))
            for topic in sorted(sizes.keys() | lag.keys())
        }

    def start(self) -> None:
        """Start; the archive is made when there is none and nothing was archived, and may be out of reach."""
        _give_back_what_is_freed()
        self._begin("pylog-archive", self._run)

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._keep_going, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Stop, before the broker does; an object that is being copied is finished, or given up when that takes long."""
        self._closing.set()
        self._due.set()
        self._archives.close()
        deadline = time.monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _keep_going(self, work: Callable[[], None]) -> None:
        while not self._closing.is_set():
            self._try(work)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except NativeError as error:
            if not self._closing.is_set():
                log.error("Archiving goes on after an error of the native server: %s", error.args[1])
                self._closing.wait(_RETRY_S)
        except Exception:
            log.exception("Archiving goes on after an error of its own.")
            self._closing.wait(_RETRY_S)

    def _run(self) -> None:
        objects = self._opened()
        if objects is None:
            return
        settings, archives = self._settings, self._archives
        known = KnownArchive(objects, archives)
        options = CopyOptions(settings.level, settings.segment_bytes, settings.long_range)
        copying = CopierSettings(options, settings.bytes_per_second)
        removals = Removals(objects, self._counting)
        self._measured = known, removals
        copier = Copier(objects, archives, known, copying, self._counting, removals, self._topic_of, self._closing)
        reader = ArchiveReader(objects, archives, known, self._counting, settings.cache_bytes)
        for number in range(_LEARNERS):
            self._begin(f"pylog-archive-known-{number}", partial(self._learn, known))
        for number in range(settings.readers):
            self._begin(f"pylog-archive-read-{number}", partial(self._answer, reader, copier))
        self._keep_going(partial(self._copy, copier, Sweeper(objects, self._cluster, self._counting)))

    def _opened(self) -> Objects | None:
        """The archive; None when the broker stops before it can be used. What keeps it from that is said once."""
        said = ""
        while not self._closing.is_set():
            found = self._open()
            if isinstance(found, Objects):
                return found
            if found != said:
                log.error("The archive %s cannot be used, and is tried again: %s", self._settings.url, found)
                said = found
            self._closing.wait(_RETRY_S)
        return None

    def _open(self) -> Objects | str:
        """The archive, or why it cannot be used."""
        try:
            return open_root(Objects(self._settings.url), self._settings.url, create=not self._archived)
        except LogError as error:
            return f"{error.sentence} {self._expected()}".rstrip()
        except OSError as error:
            return str(error)

    def _expected(self) -> str:
        """Why an archive is expected; "" where one would be made."""
        if not self._archived:
            return ""
        return (
            f"{len(self._archived)} topics have remote.storage.enable, such as {self._archived[0]}, so their archive is in another place: give "
            "it as archive.url, or mount it. Until then nothing is deleted here, and clients cannot begin at the first records. To begin "
            "a new archive, set remote.storage.enable=false for these topics, restart the broker, and set it to true again."
        )

    def _copy(self, copier: Copier, sweeper: Sweeper) -> None:
        turn = 0
        while not self._closing.is_set():
            copier.turn()
            if turn % _TURNS_PER_SWEEP == 0:
                sweeper.turn()
            turn += 1
            next_turn = time.monotonic() + self._settings.interval_ms / 1000
            # Clients that delete records do not wait for a turn.
            while self._due.wait(max(0.0, next_turn - time.monotonic())) and not self._closing.is_set():
                self._due.clear()
                copier.delete_asked()

    def _learn(self, known: KnownArchive) -> None:
        while not self._closing.is_set():
            at = self._claim_unknown()
            if at is None:
                self._archives.wait(_WAIT_MS)
                continue
            try:
                learned = self._learn_one(known, at)
            finally:
                self._claimed.discard(at.key)
            if not learned:
                self._closing.wait(_RETRY_S)

    def _claim_unknown(self) -> Partition | None:
        """A partition of which it is not known what the archive has, and that no other thread reads about; one whose reads hang keeps one thread only."""
        with self._claiming:
            for at in led_partitions(self._archives):
                if not at.is_known and at.key not in self._claimed:
                    self._claimed.add(at.key)
                    return at
        return None

    def _learn_one(self, known: KnownArchive, at: Partition) -> bool:
        """Learn of a partition; whether that could be done."""
        try:
            known.learn(at)
        except LogError as error:
            if error.kind == "NOT_LEADER_OR_FOLLOWER":
                return True
            return self._say_unknown(at, error)
        except OSError as error:
            return self._say_unknown(at, error)
        return True

    def _say_unknown(self, at: Partition, error: Exception) -> bool:
        log.warning("What the archive has of %s cannot be read now, and is tried again: %s", at.name, error)
        return False

    def _answer(self, reader: ArchiveReader, copier: Copier) -> None:
        _be_nice()
        while not self._closing.is_set():
            found = self._archives.next_question(_WAIT_MS)
            if found is None:
                continue
            question = Question(*found)
            if question.kind == "delete":
                copier.deletions.put(question)
                self._due.set()
            else:
                reader.answer(question)
