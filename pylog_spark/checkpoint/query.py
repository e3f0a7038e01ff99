"""A query's checkpoint: which batches are planned and finished, where its sources are, whether it has state.

Spark writes ``offsets/N`` when it plans batch N, and ``commits/N`` when it has finished it. A restarted query goes on at ``offsets/N`` of the
last batch: if that is finished, the next one begins there; if not, Spark runs it again as it was planned (MicroBatchExecution). Numbers of
batches only grow, and sinks that write exactly once go by them. ``state/`` has the state of aggregations, joins and the like, by versions: what
batch N leaves has the version N + 1.
"""

from __future__ import annotations

import json
from functools import cached_property

from pylog_spark.checkpoint.files import CheckpointFiles
from pylog_spark.checkpoint.offset_log import OffsetEntry, OffsetLogError
from pylog_spark.client.errors import LogError

OFFSETS, COMMITS, STATE, METADATA = "offsets", "commits", "state", "metadata"


class Checkpoint:
    """A checkpoint as it is at this moment; what was read once is kept.

    Parameters
    ----------
    files : CheckpointFiles
        Its folder.

    Raises
    ------
    LogError
        When the folder is not there, or not the checkpoint of a query.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self.files = files
        if METADATA not in files.names("") or not self.planned:
            raise LogError(
                "INVALID_CHECKPOINT",
                f"{files.location} is not the checkpoint of a streaming query that has planned a batch: give the query's checkpointLocation, "
                "in which there are 'metadata' and 'offsets'.",
            )

    @cached_property
    def query_id(self) -> str:
        """The id of the query."""
        return str(json.loads(self.files.read(METADATA))["id"])

    @cached_property
    def planned(self) -> list[int]:
        """The numbers of the batches that are planned, as far as the checkpoint goes back."""
        return self._numbers(OFFSETS)

    @cached_property
    def finished(self) -> list[int]:
        """The numbers of those that are finished, too."""
        return self._numbers(COMMITS)

    @property
    def last(self) -> int:
        """The last batch that is finished.

        Raises
        ------
        LogError
            When none is.
        """
        both = set(self.planned) & set(self.finished)
        if not both:
            raise LogError(
                "INVALID_CHECKPOINT",
                f"No batch of {self.files.location} is finished: run the query, or begin it anew with startingOffsets and another "
                "checkpointLocation.",
            )
        return max(both)

    @property
    def unfinished(self) -> int | None:
        """The batch that is planned and not finished, if there is one."""
        return self.planned[-1] if self.planned[-1] not in self.finished else None

    @cached_property
    def is_stateful(self) -> bool:
        """Whether the query has state."""
        return bool(self.files.names(STATE))

    def entry(self, batch: int) -> OffsetEntry:
        """Where the sources are at the end of a batch. Raises `LogError` when the checkpoint does not have it."""
        if batch not in self.planned:
            raise LogError(
                "INVALID_ARGUMENT",
                f"{self.files.location} has no batch {batch}; it has {self.planned[0]} to {self.planned[-1]}.",
            )
        name = f"{OFFSETS}/{batch}"
        try:
            return OffsetEntry.of_text(self.files.read(name).decode())
        except (OffsetLogError, UnicodeDecodeError) as error:
            raise LogError("INVALID_CHECKPOINT", f"{self.files.location}/{name} {error}.") from None

    def _numbers(self, folder: str) -> list[int]:
        return sorted(int(name) for name in self.files.names(folder) if name.isdecimal())
