"""How far a mirror is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """A partition that is copied into another cluster.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    end_offset : int
        Where the copy ends; -1 when that is not known yet.
    source_start_offset, source_end_offset : int
        The first offset in the source, and its high watermark; -1 when not known yet.
    bytes : int
        Bytes copied since the mirror began.
    error, message : str or None
        Why it does not go on now, and the sentence; None when it does.
    """

    topic: str
    partition: int
    end_offset: int
    source_start_offset: int
    source_end_offset: int
    bytes: int
    error: str | None
    message: str | None

    @property
    def lag(self) -> int | None:
        """How many offsets the copy is behind; None when that is not known yet."""
        if self.end_offset < 0 or self.source_end_offset < 0:
            return None
        return max(self.source_end_offset - self.end_offset, 0)
