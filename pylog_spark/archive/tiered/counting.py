"""What the archive of a broker has done since its start, for monitoring. Thread-safe."""

import threading
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ArchiveCounts:
    """Counts since the start of the broker.

    Attributes
    ----------
    copies, copied_bytes, failed_copies : int
        Objects that were copied, the bytes of record batches in them, and how often copying a partition failed.
    deletes, failed_deletes : int
        Objects with records that were deleted, and how often deleting of a partition or a deleted topic failed.
    reads, read_bytes, failed_reads : int
        Questions of clients for old records or a time, the bytes of record batches that answered them, and the questions that failed.
    """

    copies: int = 0
    copied_bytes: int = 0
    failed_copies: int = 0
    deletes: int = 0
    failed_deletes: int = 0
    reads: int = 0
    read_bytes: int = 0
    failed_reads: int = 0


@dataclass(frozen=True, slots=True)
class ArchivedTopic:
    """What the archive has of the partitions of a topic that are led here.

    Attributes
    ----------
    segments, bytes, stored_bytes : int
        Objects that manifests name, the bytes of record batches in them, and their own.
    segments_to_delete, bytes_to_delete : int
        Objects that are to go and are still there, and the bytes of record batches in them.
    """

    segments: int = 0
    bytes: int = 0
    stored_bytes: int = 0
    segments_to_delete: int = 0
    bytes_to_delete: int = 0


class Counting:
    """Counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = ArchiveCounts()

    @property
    def now(self) -> ArchiveCounts:
        """What was counted."""
        return self._now

    def copied(self, count: int) -> None:
        """An object with so many bytes of batches was copied."""
        with self._lock:
            self._now = replace(self._now, copies=self._now.copies + 1, copied_bytes=self._now.copied_bytes + count)

    def copy_failed(self) -> None:
        """A partition could not be copied."""
        with self._lock:
            self._now = replace(self._now, failed_copies=self._now.failed_copies + 1)

    def deleted(self) -> None:
        """An object with records was deleted."""
        with self._lock:
            self._now = replace(self._now, deletes=self._now.deletes + 1)

    def delete_failed(self) -> None:
        """What is to go of a partition, or of a deleted topic, could not be deleted."""
        with self._lock:
            self._now = replace(self._now, failed_deletes=self._now.failed_deletes + 1)

    def asked(self) -> None:
        """A client wants something."""
        with self._lock:
            self._now = replace(self._now, reads=self._now.reads + 1)

    def read(self, count: int) -> None:
        """A client was given so many bytes of batches."""
        with self._lock:
            self._now = replace(self._now, read_bytes=self._now.read_bytes + count)

    def read_failed(self) -> None:
        """A client was refused, because the archive could not be read."""
        with self._lock:
            self._now = replace(self._now, failed_reads=self._now.failed_reads + 1)
