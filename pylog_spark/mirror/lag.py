"""How far the topics of a target are behind their source, asked from both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pylog_spark.client.admin import LATEST, Admin
from pylog_spark.client.errors import LogError
from pylog_spark.mirror.positions import Positions
from pylog_spark.mirror.topics import is_wanted, read_topics


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far the copy of a partition is behind.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    source_end_offset, end_offset : int or None
        Where the source ends, and where the copy does; None where there is none. Of a copy with offsets of its own, up to which offset of
        the source it is copied.
    """

    topic: str
    partition: int
    source_end_offset: int | None
    end_offset: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets the copy is behind; None without one of both."""
        if self.source_end_offset is None or self.end_offset is None:
            return None
        return max(self.source_end_offset - self.end_offset, 0)


def cluster_id(admin: Admin, which: str) -> str:
    """Give the id of a cluster. Raises `LogError` when its brokers have none."""
    found = admin.cluster().cluster_id
    if not found:
        raise LogError("UNSUPPORTED_VERSION", f"The {which}'s brokers do not say which cluster they are: update them.")
    return found


def lags(source: Admin, target: Admin, target_settings: Mapping[str, str], pattern: str = ".*") -> list[PartitionLag]:
    """Give the lag of each partition of the topics in `target` that are copies of `source`'s and match `pattern`.

    The copies are asked first, so that a lag is never too small. `target_settings` are those of a client of the target.
    """
    source_id = cluster_id(source, "source")
    matching = re.compile(pattern)
    described = [topic for topic in target.topics() if is_wanted(topic, matching)]
    copies = [topic for topic in read_topics(target, described).values() if topic.source == source_id]
    ends = _ends(target, {topic.name: len(topic.leaders) for topic in copies})
    positions = Positions(target, target_settings, source_id)
    positions.catch_up()
    ends |= {at: offset for at, offset in positions.partitions().items() if matching.fullmatch(at[0])}
    there = {topic.name: len(topic.partitions) for topic in source.topics() if not topic.error}
    source_ends = _ends(source, {topic: there.get(topic, 0) for topic, _ in ends})
    return [
        PartitionLag(name, partition, source_ends.get((name, partition)), ends.get((name, partition)))
        for name, partition in sorted({*ends, *source_ends})
    ]


def _ends(admin: Admin, counts: dict[str, int]) -> dict[tuple[str, int], int]:
    wanted = [(name, partition, LATEST) for name, count in counts.items() for partition in range(count)]
    return {(found.topic, found.partition): found.offset for found in admin.offsets(wanted)} if wanted else {}
