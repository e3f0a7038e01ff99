"""Answers clients of a broker that want records which only the archive has.

Neighbouring frames of an object are read at once, and kept as they are stored, up to a bound of bytes; a frame is decompressed when it is
asked for. When the last frame of such a group was given, the next one is read ahead. Several threads answer; of those that want the same
group one reads it. An answer is one frame or a few: the native half cuts it to what the client asked for.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from pylog_spark.archive.store.layout import ROOT, partition_folder
from pylog_spark.archive.store.manifest import Manifest
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.store.reading import first_at, load_footer
from pylog_spark.archive.store.segment import Footer, Frame, open_frame
from pylog_spark.archive.tiered.broker import Question
from pylog_spark.archive.tiered.counting import Counting
from pylog_spark.archive.tiered.known import KnownArchive
from pylog_spark.client.errors import LogError

if TYPE_CHECKING:
    from pylog_spark._native import BrokerArchives

log = logging.getLogger("pylog.broker.archive")

#: Bytes of neighbouring frames, as they are stored, that are read at once.
GROUP_BYTES = 2 << 20
_FOOTERS = 256

Key = TypeVar("Key")
Value = TypeVar("Value")


class Group(NamedTuple):
    """Neighbouring frames of an object.

    Attributes
    ----------
    path : str
        Of the object.
    frames : tuple of Frame
        By offset.
    """

    path: str
    frames: tuple[Frame, ...]

    @property
    def size(self) -> int:
        """Bytes, as they are stored."""
        return sum(frame.size for frame in self.frames)


class Cache(Generic[Key, Value]):
    """Keeps what was read last, up to a bound; of several threads that want the same, one reads. Thread-safe.

    Parameters
    ----------
    most : int
        Bound of the sizes of all values; a larger one is given and not kept.
    size_of : callable
        The size of a value.
    """

    def __init__(self, most: int, size_of: Callable[[Value], int]) -> None:
        self._most, self._size_of, self._size = most, size_of, 0
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._reading: dict[Key, Future[Value]] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        with self._lock:
            return key in self._values or key in self._reading

    def get(self, key: Key, read: Callable[[], Value]) -> Value:
        """Give what is kept, or what `read` gives. Raises what that raises."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            reading = self._reading.get(key)
            mine = reading is None
            if reading is None:
                reading = self._reading[key] = Future()
        if mine:
            try:
                value = read()
            except BaseException as error:
                with self._lock:
                    del self._reading[key]
                reading.set_exception(error)
                raise
            self._keep(key, value)
            reading.set_result(value)
        return reading.result()

    def _keep(self, key: Key, value: Value) -> None:
        size = self._size_of(value)
        with self._lock:
            del self._reading[key]
            if size > self._most:
                return
            self._values[key] = value
            self._size += size
            while self._size > self._most:
                _, dropped = self._values.popitem(last=False)
                self._size -= self._size_of(dropped)


class ArchiveReader:
    """Answers questions, each in the thread that calls it. Thread-safe.

    Parameters
    ----------
    objects : Objects
        The archive.
    archives : BrokerArchives
        Whose questions.
    known : KnownArchive
        What the archive has.
    counting : Counting
        Where it is counted.
    cache_bytes : int
        Bound of what is kept of objects.
    """

    def __init__(
        self, objects: Objects, archives: BrokerArchives, known: KnownArchive, counting: Counting, cache_bytes: int
    ) -> None:
        self._objects, self._archives, self._known, self._counting = objects, archives, known, counting
        self._footers: Cache[str, tuple[Footer, tuple[Group, ...]]] = Cache(_FOOTERS, lambda _footer: 1)
        self._groups: Cache[tuple[str, int], bytes] = Cache(cache_bytes, len)

    def answer(self, question: Question) -> None:
        """Answer a question for batches or a time; what fails is said, and refused so that the client asks again."""
        behind: int | None = None
        self._counting.asked()
        manifest = self._known.manifest(question.key)
        try:
            if manifest is None:
                self._archives.refuse(question.number, "")
            elif question.kind == "time":
                self._archives.answer_offset(question.number, self._first_at(manifest, question.value))
            else:
                frames, behind = self._batches(manifest, question)
                aborted = manifest.aborted_in(question.value, behind)
                self._archives.answer_batches(question.number, frames, aborted, manifest.end)
                self._counting.read(sum(map(len, frames)))
        except (LogError, OSError) as error:
            # Retention removes objects. Where the archive is gone they may come back with it.
            is_removed = isinstance(error, FileNotFoundError) and self._is_there()
            kind = "OFFSET_OUT_OF_RANGE" if is_removed else ""
            log.warning("%s cannot be read from the archive at %d: %s", question.name, question.value, error)
            self._archives.refuse(question.number, kind)
            self._counting.read_failed()
        if manifest is not None and behind is not None:
            self._read_ahead(manifest, behind)

    def _is_there(self) -> bool:
        try:
            return self._objects.exists(ROOT)
        except OSError:
            return False

    def _batches(self, manifest: Manifest, question: Question) -> tuple[list[bytes], int]:
        """Frames from the one with the offset on, decompressed, and the offset behind them."""
        frames: list[bytes] = []
        size, behind, last = 0, question.value, None
        for group, frame in self._frames(manifest, question.value):
            if frames and (size + frame.bytes > question.max_bytes or group.path != last):
                break
            frames.append(self._opened(group, frame))
            size, behind, last = size + frame.bytes, frame.next, group.path
        return frames, behind

    def _frames(self, manifest: Manifest, offset: int) -> Iterator[tuple[Group, Frame]]:
        """The frames with records from an offset on, each with its group. Raises as `_footer`."""
        folder = partition_folder(manifest.topic, manifest.topic_id, manifest.partition)
        for segment in manifest.covering(offset, manifest.end):
            _, groups = self._footer(f"{folder}/{segment.name}", segment.size)
            yield from ((group, frame) for group in groups for frame in group.frames if frame.next > offset)

    def _footer(self, path: str, size: int) -> tuple[Footer, tuple[Group, ...]]:
        def read() -> tuple[Footer, tuple[Group, ...]]:
            footer = load_footer(self._objects, path, size)
            return footer, tuple(_grouped(path, footer.frames))

        return self._footers.get(path, read)

    def _opened(self, group: Group, frame: Frame) -> bytes:
        begin = frame.position - group.frames[0].position
        return open_frame(self._stored(group)[begin : begin + frame.size], frame, group.path)

    def _stored(self, group: Group) -> bytes:
        first = group.frames[0].position
        read = lambda: self._objects.read_part(group.path, first, group.size)  # noqa: E731
        return self._groups.get((group.path, first), read)

    def _read_ahead(self, manifest: Manifest, offset: int) -> None:
        """Read the group that begins at an offset, if one does: who reads on wants it next."""
        try:
            following = next(self._frames(manifest, offset), None)
            if following is None or following[1] is not following[0].frames[0]:
                return
            group = following[0]
            if (group.path, group.frames[0].position) not in self._groups:
                self._stored(group)
        except (LogError, OSError) as error:
            # Who asks for it hears of it.
            log.debug("What follows offset %d cannot be read ahead: %s", offset, error)

    def _first_at(self, manifest: Manifest, time_ms: int) -> tuple[int, int] | None:
        def batches(path: str, size: int, frame: Frame) -> bytes:
            groups = self._footer(path, size)[1]
            return self._opened(next(group for group in groups if frame in group.frames), frame)

        return first_at(manifest, manifest.start, time_ms, lambda path, size: self._footer(path, size)[0], batches)


def _grouped(path: str, frames: tuple[Frame, ...]) -> Iterator[Group]:
    begin = size = 0
    for number, frame in enumerate(frames):
        if number > begin and size + frame.size > GROUP_BYTES:
            yield Group(path, frames[begin:number])
            begin, size = number, 0
        size += frame.size
    if begin < len(frames):
        yield Group(path, frames[begin:])
