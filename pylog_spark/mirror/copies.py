"""The two ways to copy: with the source's offsets (`SameOffsets`, into a pylog), and by records (`own_offsets.OwnOffsets`, into Apache Kafka)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError, translated
from pylog_spark.mirror.topics import MIRROR_SOURCE, Topic
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.mirror import MirroredPartition

_PROBE = "pylog-mirror-probe"
_FORBIDDEN = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "POLICY_VIOLATION")

Partition = tuple[str, int]
InCopies = Callable[[Partition, int], int | None]


class Copies(Protocol):
    """What copies partitions, in threads of its own, until `stop`."""

    def assign(self, topics: Mapping[str, Topic]) -> None:
        """Copy these topics of the source, and no others."""

    def progress(self) -> list[MirroredPartition]:
        """Say how far each partition is."""

    def failures(self) -> Sequence[tuple[str, str]]:
        """Say what keeps all from going on: kinds and sentences."""

    def take_stale(self) -> bool:
        """Whether the source's leaders are to be asked for again."""

    def create(self, topic: Topic, replication_factor: int) -> None:
        """Create a copy without records. Raises `LogError`."""

    def owner(self, present: Topic) -> str:
        """Give the id of the cluster that a topic of the target is a copy of; empty for a topic as any other."""

    def topic_id(self, name: str) -> str | None:
        """Give the id of the topic that a copy is of, where that is remembered."""

    def in_copies(self) -> InCopies:
        """Give the function from a partition and an offset of the source, before which a reader has read all, to the offset in the copy where
        that reader goes on; None where that is not known."""

    def delete_before(self, partitions: Sequence[MirroredPartition]) -> None:
        """Delete in the copies what the source has no more."""

    def stop(self) -> None:
        """Stop, and wait for it."""


def takes_offsets(target: Admin) -> bool:
    """Say whether the target is a pylog that takes batches with the offsets of another cluster. Nothing is created. Raises `LogError`."""
    try:
        target.create_topic(_PROBE, 1, 1, {MIRROR_SOURCE: "probe"}, validate_only=True)
    except LogError as error:
        if error.kind == "INVALID_CONFIG":
            return False
        # Who may create only some topics is in a pylog, as far as anybody can say here.
        if error.kind not in ("TOPIC_ALREADY_EXISTS", *_FORBIDDEN):
            raise
    return True


class SameOffsets:
    """Copies batches as they are stored, by the native half.

    Parameters
    ----------
    source, target : mapping of str to str
        Settings of the client for both.
    admin : Admin
        Of the target.
    source_id : str
        The id of the source.
    bytes_per_second : int or None
        Most bytes that are copied in a second.
    """

    def __init__(
        self,
        source: Mapping[str, str],
        target: Mapping[str, str],
        admin: Admin,
        source_id: str,
        bytes_per_second: int | None,
    ) -> None:
        from pylog_spark._native import Mirror

        self._target, self._source_id = admin, source_id
        self._starts: dict[Partition, int] = {}
        with translated():
            self._native = Mirror(source, target, source_id, bytes_per_second)

    def assign(self, topics: Mapping[str, Topic]) -> None:
        """See `Copies`."""
        wanted = [(name, index, leader) for name, topic in topics.items() for index, leader in enumerate(topic.leaders)]
        with translated():
            self._native.assign(wanted)

    def progress(self) -> list[MirroredPartition]:
        """See `Copies`."""
        with translated():
            return all_decoded(MirroredPartition, self._native.progress())

    def failures(self) -> Sequence[tuple[str, str]]:
        """See `Copies`."""
        return self._native.failures()

    def take_stale(self) -> bool:
        """See `Copies`."""
        return self._native.take_stale()

    def create(self, topic: Topic, replication_factor: int) -> None:
        """See `Copies`."""
        configs = {MIRROR_SOURCE: self._source_id}
        self._target.create_topic(topic.name, len(topic.leaders), replication_factor, configs)

    def owner(self, present: Topic) -> str:
        """See `Copies`."""
        return present.source

    def topic_id(self, name: str) -> str | None:
        """See `Copies`."""
        return None

    def in_copies(self) -> InCopies:
        """See `Copies`."""
        ends = {(at.topic, at.partition): at.end_offset for at in self.progress() if at.end_offset >= 0}
        return lambda at, offset: min(offset, ends[at]) if at in ends else None

    def delete_before(self, partitions: Sequence[MirroredPartition]) -> None:
        """See `Copies`."""
        for at in partitions:
            start, key = min(at.source_start_offset, at.end_offset), (at.topic, at.partition)
            if start > self._starts.get(key, 0):
                (deleted,) = self._target.delete_records([(at.topic, at.partition, start)])
                # What is only compacted has no start to follow.
                if deleted.error in (None, "POLICY_VIOLATION"):
                    self._starts[key] = start

    def stop(self) -> None:
        """See `Copies`."""
        self._native.stop()
