"""``format("pylog")``: the class that Spark calls, which hands over to the packages `source` and `sink`.

Spark finds it through the package `pyspark_pylog`, imports it in every Python process that looks for data sources, and
makes an instance at every ``load()``, ``save()`` and ``start()``. So nothing heavy is imported here (the methods import the
native module, pyarrow, and the packages), and options are checked as soon as they are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pylog_spark import schema as columns
from pylog_spark.errors import PylogError
from pylog_spark.options import BATCH, STREAM, check_allowed, check_names, read_options, write_options
from pylog_spark.spark.raising import sentence_first
from pylog_spark.spark.worker import freeze_imports
from pylog_spark.typed.columns import typed_columns, typed_ddl
from pylog_spark.typed.writing import typed_write

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pylog_spark.sink.task import WritePlan
    from pylog_spark.source.partition import RangeSource


def _release(client: Mapping[str, str], partitions: Collection[tuple[str, int]]) -> tuple[int, Mapping[str, str]]:
    """End abandoned writes whose open transactions hold a reader back. Here, because `source` and `sink` do not import each other."""
    from pylog_spark.sink.holding import release

    return release(client, partitions)


#: Options besides ``ending...`` that only a batch read has, in lower case.
_OF_BATCH = frozenset({"limit", "pushdown", "path", "cut", "ignorecorruptbatches", "maxbytesperpartition"})


class PylogDataSource(DataSource):
    """Reads and writes the logs of brokers that speak Kafka's protocol.

    The options are in `pylog_spark.options`, the columns in `pylog_spark.columns` and `pylog_spark.schema`.

    Parameters
    ----------
    options : mapping of str to str
        The options of the query, by their names in any case.

    Examples
    --------
    >>> servers = {"kafka.bootstrap.servers": "localhost:9092"}
    >>> spark.read.format("pylog").options(**servers).option("subscribe", "flights").load()  # doctest: +SKIP
    >>> frame.write.format("pylog").options(**servers).option("topic", "flights").mode("append").save()  # doctest: +SKIP
    """

    @sentence_first
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_names(options)
        check_allowed(options)

    @classmethod
    def name(cls) -> str:
        """The word in ``format("pylog")``."""
        return "pylog"

    @sentence_first
    def schema(self) -> str:
        """Give the columns of a read. Spark calls this at ``load()`` unless ``.schema()`` names them; so a broker that does not
        answer, or a topic that does not exist, is an error at once.

        Whether it is a batch or a stream is not known yet, except that only a batch has an end or a limit; the other options
        are checked by `reader` and `streamReader`.
        """
        of_batch = any(key.lower().startswith("ending") or key.lower() in _OF_BATCH for key in self.options)
        options = read_options(self.options, BATCH if of_batch else STREAM)
        from pylog_spark.source.log import Log

        Log(options).check()
        if options.formats.are_given:
            return typed_ddl(options.formats.resolved(), options.include_headers)
        return columns.read_ddl(options.include_headers)

    @sentence_first
    def reader(self, schema: StructType) -> DataSourceReader:
        """Give the reader of a batch.

        Parameters
        ----------
        schema : StructType
            The columns that are read.
        """
        from pylog_spark.source.batch import PylogReader

        options = read_options(self.options, BATCH)
        source = self._range_source(schema, BATCH)
        if not options.pushdown:
            return PylogReader(options, source, _release)
        from pylog_spark.source.pushdown import pushdown_reader

        return pushdown_reader(options, source, _release)

    @sentence_first
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Give the reader of a streaming query.

        Parameters
        ----------
        schema : StructType
            The columns that are read.
        """
        from pylog_spark.source.stream import refusing_reader, stream_reader

        try:
            options = read_options(self.options, STREAM)
            return stream_reader(options, self._range_source(schema, STREAM), _release)
        except PylogError as error:
            return refusing_reader(error)

    @sentence_first
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Give the writer of a batch. A log is appended to; `overwrite` is refused.

        Parameters
        ----------
        schema : StructType
            The columns of the frame.
        overwrite : bool
            Whether the mode is not append.
        """
        if overwrite:
            raise PylogError(
                "PYLOG_UNSUPPORTED_MODE",
                'A log can only be appended to: use mode("append"), and pylog topic delete to start with an empty topic.',
            )
        from pylog_spark.sink.batch import PylogWriter

        return PylogWriter(self._write_plan(schema, streaming=False))

    @sentence_first
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Give the writer of a streaming query. The output mode complete arrives as `overwrite`; each batch is
        appended all the same, as Spark's Kafka connector does.

        Parameters
        ----------
        schema : StructType
            The columns of the frame.
        overwrite : bool
            Whether the output mode is complete.
        """
        from pylog_spark.sink.stream import stream_writer

        return stream_writer(self._write_plan(schema, streaming=True))

    def _range_source(self, schema: StructType, scope: str) -> RangeSource:
        from pylog_spark.source.bad_records import BadTopic
        from pylog_spark.source.partition import RangeSource
        from pylog_spark.spark.contact import require_topic

        freeze_imports()
        options = read_options(self.options, scope)
        if options.bad_topic is not None:
            require_topic(options.client, options.bad_topic)
        typed = typed_columns(schema, options.formats.resolved()) if options.formats.are_given else None
        names = () if typed else columns.read_columns(schema)
        nullable = {field.name: field.nullable for field in schema.fields}
        return RangeSource(
            options.task_client,
            names,
            nullable,
            options.batch_bytes,
            options.fail_on_data_loss,
            options.wanted,
            options.limit,
            options.rack,
            options.local_reads,
            typed,
            BadTopic(options.task_client, options.bad_topic) if options.bad_topic is not None else None,
            options.path,
            options.skip_damaged,
            options.cut,
        )

    def _write_plan(self, schema: StructType, *, streaming: bool) -> WritePlan:
        from pylog_spark.sink.identity import batch_write
        from pylog_spark.sink.task import WritePlan

        freeze_imports()
        options = write_options(self.options, streaming=streaming)
        typed = None
        if options.formats.are_given:
            names, typed = typed_write(schema, options.topic, options.formats)
        else:
            names = columns.write_columns(schema, options.topic)
        batch = None if streaming else batch_write(options.named, options.topic, options.ledger)
        return WritePlan(
            options.client,
            options.topic,
            names,
            options.delivery,
            batch,
            abandoned_after_ms=options.abandoned_after_ms,
            typed=typed,
            audit=options.audit,
            ledger=options.ledger,
            fails_when_written=options.fails_when_written,
        )
