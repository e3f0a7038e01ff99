"""Ranges of a topic as Arrow, for programs without Spark: pandas, polars, duckdb and whatever else reads Arrow.

Fetching and decoding happen in native threads while the program looks at what has come; no Python object is made per record. Partitions
are read one after the other, each in the order of its offsets. A reader is not thread-safe, and is read once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError, translated
from pylog_spark.client.places import Place, Places
from pylog_spark.client.pulling import Span
from pylog_spark.client.typed import Columns, FormatOptions, read_columns
from pylog_spark.columns import read_batches
from pylog_spark.results.decoding import all_decoded
from pylog_spark.results.topics import PartitionOffset, TopicDescription
from pylog_spark.typed.readers import UNKNOWN_WRITERS, log_left_out

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from pylog_spark._native import LogDirectory, RangeReader, TypedRead

_log = logging.getLogger("pylog_spark")


def read_range(
    bootstrap_servers: str,
    topic: str,
    *,
    start: Place = "earliest",
    end: Place = "latest",
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    local_reads: bool = False,
    config: Mapping[str, str] | None = None,
    **formats: Unpack[FormatOptions],
) -> pa.RecordBatchReader:
    """Read the records of a topic that lie between two places.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    topic : str
        The topic to read.
    start : str, int, datetime or mapping of int to int
        The first record: ``earliest``, ``latest``, an offset, an offset for each partition (others begin at their first record), or a
        time with a time zone, which stands for the first record at or after it.
    end : str, int, datetime or mapping of int to int
        Said alike: the first record that is not read any more. ``latest`` is the end of the log as it is now.
    partitions : sequence of int, optional
        The partitions to read; all when not given.
    columns : sequence of str, optional
        Of ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp``, ``timestampType`` and ``headers``, in the order
        wanted; all when not given. Only those are built. With formats: of the columns that these give.
    local_reads : bool
        Whether records may come from the broker's own files, on its machine; as the option ``localReads`` of the data source.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names, such as ``isolation.level``.
    **formats
        How keys and values become typed columns, such as ``value_format="json"``: see `pylog_spark.client.FormatOptions`. Without any they are
        bytes.

    Returns
    -------
    pyarrow.RecordBatchReader
        Columns with the types of the data source: binary key and value, timestamp in microseconds UTC.

    Raises
    ------
    LogError
        When no broker can be reached, the topic or a partition does not exist, the log does not hold an offset, the start lies behind the
        end, or a column is unknown, or a format or schema cannot be used. While batches are read, when records are gone meanwhile or brokers
        are, or with ``mode="FAILFAST"`` do not parse.

    Examples
    --------
    >>> from pylog_spark.client import read_range
    >>> frame = read_range("127.0.0.1:9092", "events", columns=["key", "value"]).read_pandas()  # doctest: +SKIP
    """
    import pyarrow as pa

    wanted = read_columns(columns, formats)
    settings = {**(config or {}), "bootstrap.servers": bootstrap_servers}
    spans = spans_of(settings, topic, partitions, start, end)
    return pa.RecordBatchReader.from_batches(wanted.schema, _batches(settings, spans, wanted, local_reads=local_reads))


def read_directory(
    path: str | os.PathLike[str],
    topic: str,
    *,
    start: Place = "earliest",
    end: Place = "latest",
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    isolation_level: str = "read_uncommitted",
    ignore_corrupt_batches: bool = False,
    **formats: Unpack[FormatOptions],
) -> pa.RecordBatchReader:
    """Read the records of a topic out of the data directory of a broker, pylog's or Apache Kafka's, without the broker.

    Parameters
    ----------
    path : str or path-like
        The directory; nothing in it is changed.
    topic, start, end, partitions, columns
        As in `read_range`. ``latest`` is where the log ends: behind its last whole record batch.
    isolation_level : str
        With ``read_committed`` records of aborted transactions are left out, and reading ends where a transaction was open.
    ignore_corrupt_batches : bool
        Whether bytes that are no whole record batch are left out, with a warning in Python's log, instead of being an error.
    **formats
        As in `read_range`.

    Returns
    -------
    pyarrow.RecordBatchReader
        As of `read_range`.

    Raises
    ------
    LogError
        As `read_range`; when the path is no data directory. While batches are read, when bytes are damaged.

    Examples
    --------
    >>> from pylog_spark.client import read_directory
    >>> frame = read_directory("./data", "events", columns=["key", "value"]).read_pandas()  # doctest: +SKIP
    """
    import pyarrow as pa

    from pylog_spark._native import LogDirectory

    wanted = read_columns(columns, formats)
    with translated():
        directory = LogDirectory(os.fspath(path), isolation_level, ignore_corrupt_batches)
    places = Places(_Stored(directory, os.fspath(path)), topic, partitions, isolation_level)
    spans = _spans(places, topic, start, end)
    return pa.RecordBatchReader.from_batches(wanted.schema, _batches({}, spans, wanted, directory=directory))


class _Stored:
    """A data directory, asked as an admin is (`pylog_spark.client.places.Holder`)."""

    def __init__(self, directory: LogDirectory, path: str) -> None:
        self._directory, self._path = directory, path

    def topic(self, name: str) -> TopicDescription:
        with translated():
            (described,) = all_decoded(TopicDescription, self._directory.describe_topics([name]))
        if described.error:
            raise LogError(described.error, f"{self._path} has no topic '{name}'.")
        return described

    def offsets(
        self, wanted: Sequence[tuple[str, int, int]], isolation_level: str = "read_uncommitted"
    ) -> list[PartitionOffset]:
        with translated():
            return [PartitionOffset(*found) for found in self._directory.list_offsets(wanted, isolation_level)]


def _batches(
    settings: Mapping[str, str],
    spans: list[Span],
    columns: Columns,
    *,
    local_reads: bool = False,
    directory: LogDirectory | None = None,
) -> Iterator[pa.RecordBatch]:
    decoder, absent, left = columns.decoder(), 0, spans
    try:
        while left:
            reader = _open(settings, left, columns.names, decoder, local_reads=local_reads, directory=directory)
            try:
                for batch in read_batches(reader, columns.schema, _failure):
                    if batch.num_rows:
                        yield batch
                return
            except _UnknownWriters:
                topic, partition, begin, end, topic_id = left[reader.range_index]
                begin = max(begin, reader.next_offset)
                left = [(topic, partition, begin, end, topic_id), *left[reader.range_index + 1 :]]
                absent = columns.look_up(decoder, absent)
            finally:
                reader.stop()
    finally:
        for line in directory.take_notices() if directory is not None else ():
            _log.warning("%s", line)
        log_left_out(decoder)


def _open(
    settings: Mapping[str, str],
    spans: list[Span],
    names: list[str],
    decoder: TypedRead | None,
    *,
    local_reads: bool,
    directory: LogDirectory | None,
) -> RangeReader:
    from pylog_spark._native import RangeReader

    (topic, partition, begin, end, topic_id), *others = spans
    with translated():
        return RangeReader(
            settings,
            topic,
            partition,
            begin,
            end,
            names,
            topic_id=topic_id,
            then=others,
            local_reads=local_reads,
            directory=directory,
            typed=decoder,
        )


class _UnknownWriters(Exception):
    """Records were written with schemas that are to be looked up."""


def _failure(kind: str, message: str) -> Exception:
    return _UnknownWriters() if kind == UNKNOWN_WRITERS else LogError(kind, message)


def spans_of(
    settings: Mapping[str, str], topic: str, partitions: Sequence[int] | None, start: Place, end: Place
) -> list[Span]:
    """Ask brokers for the ranges of `read_range`. Raises `LogError`."""
    with Admin(settings["bootstrap.servers"], settings) as admin:
        places = Places(admin, topic, partitions, settings.get("isolation.level", "read_uncommitted"))
        return _spans(places, topic, start, end)


def _spans(places: Places, topic: str, start: Place, end: Place) -> list[Span]:
    """The ranges of the partitions, but for those in which nothing lies between."""
    starts, ends = places.offsets(start), places.offsets(end, "end")
    for partition in places.partitions:
        if starts[partition] > ends[partition]:
            sentence = (
                f"The range of partition {partition} begins at offset {starts[partition]}, behind its end at {ends[partition]}: choose an "
                "earlier start or a later end."
            )
            raise LogError("INVALID_ARGUMENT", sentence)
    return [
        (topic, partition, starts[partition], ends[partition], places.topic_id)
        for partition in places.partitions
        if starts[partition] < ends[partition]
    ]
