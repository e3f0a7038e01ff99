"""One task's writing: Arrow batches in, acknowledged records out. Runs in Spark's Python workers.

At least once: a task that Spark runs again writes its rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pylog_spark.contact import first_contact, require_topic
from pylog_spark.errors import native, translated

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task wrote, all of it acknowledged.

    Attributes
    ----------
    records, bytes : int
        Counts, of the records as they were given.
    offsets : mapping
        (topic, partition) -> (first, last) offset.
    """

    records: int = 0
    bytes: int = 0
    offsets: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Where tasks write: plain values, pickled with the writer.

    Attributes
    ----------
    client : mapping
        Settings of the native client.
    topic : str or None
        Topic of all rows, or None when the column `topic` says it.
    columns : tuple of str
        Columns that make a record; others are left alone.
    """

    client: Mapping[str, str]
    topic: str | None
    columns: tuple[str, ...]

    def check(self) -> None:
        """Check that a broker answers and that the topic can be written to. Raises `PylogError` in seconds."""
        if self.topic is None:
            first_contact(self.client, [])
        else:
            require_topic(self.client, self.topic)

    def check_first_batch(self) -> None:
        """Check in the tasks of a query's first batch. Later ones may meet a broker that is restarting: they wait."""
        task = TaskContext.get()
        if task is not None and task.getLocalProperty("streaming.sql.batchId") == "0":
            self.check()

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Write all rows and wait until they are acknowledged.

        Raises
        ------
        PylogError
            For the first record that the brokers refused or did not acknowledge in time.
        """
        with translated():
            writer = native().RecordWriter(dict(self.client), self.topic)
            try:
                for batch in batches:
                    if batch.num_rows:
                        writer.write(batch.select(self.columns))
                told = writer.flush()
            finally:
                writer.close()
        offsets = {place: (first, last) for place, (first, last) in told["offsets"].items()}
        return Written(told["records"], told["bytes"], offsets)
