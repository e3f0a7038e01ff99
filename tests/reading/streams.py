"""Streaming reads as Spark's micro-batch engine and its workers do them, in this process: the data source, its stream reader, offsets
that are kept as JSON text, rows that the driver hands over, tasks that are carried by pickle. What the engine itself does (checkpoint
files, progress, the text of an error) is in ``tests/spark``.
"""

from __future__ import annotations

import json
import pickle
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.harness.runs import mostly_long
from tests.reading.support import schema
from tests.spark.support import Batches, Topic

#: Mark of a file whose tests read their micro-batches on the driver where that may be, and again by tasks alone.
BOTH_WAYS = pytest.mark.parametrize("way", mostly_long(["driver", "tasks"], "driver"), indirect=True)
#: Options of every query; set by the fixture `way`.
of_every_query: dict[str, str] = {}


@dataclass
class Checkpoint:
    """How far a query is: the end of each batch as the text that Spark writes down, and how many batches are committed."""

    offsets: list[str] = field(default_factory=list)
    committed: int = 0

    def forget_commit(self) -> None:
        """As if the driver had died before it noted the newest batch as done."""
        self.committed -= 1


class Stream(Batches):
    """A query that runs, from its start or from where its checkpoint says.

    Parameters
    ----------
    source : PylogDataSource
        What is read.
    checkpoint : Checkpoint
        Changed by each batch; without it a new one.
    columns : str
        Those of the schema, separated by commas; without them Spark would ask the source for its schema.
    limited : bool
        False for Trigger.Once, for which Spark asks for everything.
    """

    def __init__(
        self,
        source: PylogDataSource,
        checkpoint: Checkpoint | None = None,
        columns: str | None = None,
        limited: bool = True,
    ) -> None:
        super().__init__()
        if columns is None:
            source.schema()
        self.checkpoint = checkpoint or Checkpoint()
        self.latest: str | None = None
        #: How many tasks each batch had.
        self.tasks: list[int] = []
        #: The numbers of the batches whose rows came from the driver.
        self.prefetched: list[int] = []
        self._reader: Any = source.streamReader(schema(*(columns.split(",") if columns else ())))
        # Spark makes the reader of its tasks in a process of its own.
        self._carried = pickle.dumps(self._reader)
        self._limited = limited

    def available_now(self) -> Stream:
        """Read to the end of what is there at the first look, and stop."""
        try:
            if isinstance(self._reader, SupportsTriggerAvailableNow):
                self._reader.prepareForTriggerAvailableNow()
            while self.trigger():
                pass
        finally:
            self.stop()
        return self

    def trigger(self) -> bool:
        """One batch, or none when nothing is new: whether there was one."""
        known = self.checkpoint
        if len(known.offsets) == known.committed and not self._plan():
            return False
        number = known.committed
        start = json.loads(known.offsets[number - 1]) if number else self._initial
        self._run(number, start, json.loads(known.offsets[number]))
        known.committed += 1
        return True

    def stop(self) -> None:
        """Close what the reader has open."""
        self._reader.stop()

    @property
    def _initial(self) -> dict[str, Any]:
        return json.loads(json.dumps(self._reader.initialOffset()))

    def _plan(self) -> bool:
        """Write down where the next batch ends; the source hears then that the one before it is done."""
        offsets = self.checkpoint.offsets
        start = json.loads(offsets[-1]) if offsets else self._initial
        limit = self._reader.getDefaultReadLimit() if self._limited else ReadAllAvailable()
        end = json.dumps(self._reader.latestOffset(start, limit))
        self.latest = json.dumps(self._reader.reportLatestOffset())
        if offsets and end == offsets[-1]:
            return False
        if offsets:
            self._reader.commit(json.loads(offsets[-1]))
        offsets.append(end)
        return True

    def _run(self, number: int, start: dict[str, Any], end: dict[str, Any]) -> None:
        tasks = [pickle.dumps(task) for task in self._reader.partitions(start, end)]
        self.tasks.append(len(tasks))
        given = None
        if isinstance(self._reader, _SimpleStreamReaderWrapper):
            given = self._reader.getCache(start, end)
        if given is None:
            given = self._by_tasks(tasks)
        else:
            # Spark gives the one block to the one task.
            assert len(tasks) == 1
            self.prefetched.append(number)
        rows = []
        for batch in given:
            row = namedtuple("Row", batch.schema.names)
            rows += [row(*values.values()) for values in batch.to_pylist()]
        self.batches[number] = rows

    def _by_tasks(self, tasks: list[bytes]) -> Iterator[pa.RecordBatch]:
        """A worker has another copy of the reader for each task."""
        for task in tasks:
            yield from pickle.loads(self._carried).read(pickle.loads(task))


class Query(Stream):
    """A query of a topic from its beginning, unless `options` say another subscription or another start. The rest: `Stream`."""

    def __init__(
        self,
        topic: Topic,
        checkpoint: Checkpoint | None = None,
        columns: str | None = None,
        limited: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(_source(topic, {"startingOffsets": "earliest", **options}), checkpoint, columns, limited)


def batch_reader(topic: Topic, *columns: str, **options: Any) -> Any:
    """The batch reader that Spark's planner would make, of any subscription."""
    return _source(topic, options).reader(schema(*columns))


def _source(topic: Topic, options: dict[str, Any]) -> PylogDataSource:
    given = {
        **of_every_query,
        "kafka.bootstrap.servers": topic.servers,
        **{name: str(text) for name, text in options.items()},
    }
    if not options.keys() & {"assign", "subscribe", "subscribePattern"}:
        given["subscribe"] = topic.name
    return PylogDataSource(given)


def read(topic: Topic, checkpoint: Checkpoint | None = None, columns: str | None = None, **options: Any) -> Query:
    """Read to the end of what is there (Trigger.AvailableNow)."""
    query = Query(topic, checkpoint, columns, **options)
    query.available_now()
    return query


def failure(topic: Topic, checkpoint: Checkpoint | None = None, **options: Any) -> tuple[str, str]:
    """The condition and the sentence of the error that `read` must fail with."""
    with pytest.raises(PylogError) as caught:
        read(topic, checkpoint, **options)
    return caught.value.condition, caught.value.sentence
