"""What a native broker says to its archive (`pylog_spark._native.BrokerArchives`), with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pylog_spark._native import BrokerArchives


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
    closed_until : int or None
        The offset up to which it may be copied: its closed segments that are on the device, below the last stable offset; None: it is not copied
        any more.
    bytes_here : int
        Bytes of segments that the archive does not have, about.
    retention_ms, retention_bytes : int
        Of the whole log; -1 is no limit.
    needed : tuple of int or None
        Groups of `retention.until.checkpointed` need the log from an offset on, for so many milliseconds and bytes at most (-1: no limit).
    is_known : bool
        Whether the broker knows what the archive has.
    """

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    start: int
    closed_until: int | None
    bytes_here: int
    retention_ms: int
    retention_bytes: int
    needed: tuple[int, int, int] | None
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
    return sorted(Partition(*each) for each in archives.partitions())


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
