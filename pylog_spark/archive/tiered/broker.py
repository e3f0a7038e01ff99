"""What a native broker and its archive say to each other; `pylog_spark._native.BrokerArchives` is the real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pylog_spark.archive.store.manifest import Aborted

#: Topic, its id, partition, leader epoch, first offset, how far it may be copied, bytes that only the broker has, retention, whether the
#: broker knows what the archive has.
RawPartition = tuple[str, str, int, int, int, int, int, tuple[int, int], bool]
#: Number, kind, topic, its id, partition, an offset or a time, most bytes.
RawQuestion = tuple[int, str, str, str, int, int, int]


class BrokerArchives(Protocol):
    """See `pylog_spark._native.BrokerArchives`."""

    def partitions(self) -> list[RawPartition]: ...
    def read(
        self, topic_id: str, partition: int, leader_epoch: int, offset: int, max_bytes: int
    ) -> tuple[bytes, int] | None: ...
    def epoch_end(self, topic_id: str, partition: int, epoch: int) -> tuple[int, int] | None: ...
    def set_archived(
        self,
        topic_id: str,
        partition: int,
        leader_epoch: int,
        archived: tuple[int, int],
        epochs: Sequence[tuple[int, int]],
    ) -> bool: ...
    def next_question(self, timeout_ms: int) -> RawQuestion | None: ...
    def answer_batches(self, number: int, batches: bytes, aborted: Sequence[Aborted]) -> None: ...
    def answer_offset(self, number: int, found: tuple[int, int] | None = None) -> None: ...
    def refuse(self, number: int, kind: str) -> None: ...
    def wait(self, timeout_ms: int) -> bool: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class Partition(NamedTuple):
    """A partition that this broker leads, of a topic that is archived.

    Attributes
    ----------
    topic, topic_id, partition
        Which one.
    leader_epoch : int
        In which it is led.
    start : int
        Its first offset here.
    closed_until : int
        The offset up to which it may be copied: its closed segments that are on the device, below the last stable offset.
    bytes_here : int
        Bytes of segments that the archive does not have, about.
    retention_ms, retention_bytes : int
        Of the whole log; -1 is no limit.
    is_known : bool
        Whether the broker was told what the archive has.
    """

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    start: int
    closed_until: int
    bytes_here: int
    retention_ms: int
    retention_bytes: int
    is_known: bool

    @property
    def name(self) -> str:
        """Topic and partition, for sentences."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[str, int]:
        """What it is kept under."""
        return self.topic_id, self.partition


def led_partitions(archives: BrokerArchives) -> list[Partition]:
    """The partitions that are led here and archived, by name."""
    found = []
    for topic, topic_id, number, epoch, start, until, size, (
        retention_ms,
        retention_bytes,
    ), known in archives.partitions():
        found.append(
            Partition(topic, topic_id, number, epoch, start, until, size, retention_ms, retention_bytes, known)
        )
    return sorted(found)


class Question(NamedTuple):
    """What a client wants of the archive.

    Attributes
    ----------
    number : int
        By which it is answered.
    kind : str
        ``batches`` from an offset on, the first record at a ``time``, or to ``delete`` what lies before an offset.
    topic, topic_id, partition
        Where.
    value : int
        The offset, or the time in milliseconds since 1970.
    max_bytes : int
        Most bytes of batches, beside one frame.
    """

    number: int
    kind: str
    topic: str
    topic_id: str
    partition: int
    value: int
    max_bytes: int

    @property
    def name(self) -> str:
        """Topic and partition, for sentences."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[str, int]:
        """What the partition is kept under."""
        return self.topic_id, self.partition
