"""What Spark does with any data source written in Python, measured with one that is not pylog's.

pylog is built around these facts. A failure here is not a bug of pylog's: Spark has changed, and pylog may do something better,
or must do something else. What pylog makes of them is tested in `test_traps`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming import datasource as admission

from pylog_spark.testing.spark import checkpoint_settings
from tests.harness.waiting import until
from tests.spark.support import committed

pytestmark = pytest.mark.long  # Spark's version is pinned

#: Micro-batches that the stream has, of one row each.
BATCHES = 3


def note(options: Any, line: str) -> None:
    """Append a line to the log that the test reads; a line is written at once."""
    with open(options["log"], "a") as log:
        log.write(line + "\n")


class Reader(DataSourceReader):
    """One row."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield 1, "one"


class FilteringReader(Reader):
    """Takes no filter, but could."""

    def pushFilters(self, filters: list[Any]) -> Any:  # noqa: N802 - Spark's name
        return filters


class StreamReader(DataSourceStreamReader):
    """A row in each of `BATCHES` batches."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"n": 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
        note(self.options, f"plan {start['n']}")
        reached = start["n"]
        if self.options.get("phantom"):
            # Equal as a position, another text: the order of keys.
            return {"b": 0, "a": 0, "n": 1} if next(iter(start)) != "b" else {"a": 0, "b": 0, "n": 1}
        return {"n": min(reached + 1, BATCHES)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(end["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield partition.value, "some"

    def commit(self, end: dict[str, Any]) -> None:
        note(self.options, f"done {end['n']}")


class StreamWriter(DataSourceStreamWriter):
    """Counts its commits, as far as it lives."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.commits = 0

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
        self.commits += 1
        note(self.options, f"commit {batchId} by a writer with {self.commits}")


class Recorder(DataSource):
    """The source and sink of this file."""

    @classmethod
    def name(cls) -> str:
        return "recorder"

    def schema(self) -> str:
        return "n INT, text STRING"

    def reader(self, schema: Any) -> DataSourceReader:
        return FilteringReader() if "filters" in self.options else Reader()

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return StreamReader(self.options)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        note(self.options, f"overwrite {overwrite}")
        return StreamWriter(self.options)


class Recorded:
    """The registered source, and its log."""

    def __init__(self, spark: Any, folder: Path) -> None:
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        spark.dataSource.register(Recorder)
        self.spark = spark
        self.checkpoint = str(folder / "checkpoint")
        self.path = folder / "log"
        self.path.touch()

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def batch(self, **options: Any) -> Any:
        return self.spark.read.format("recorder").options(log=str(self.path), **options).load()

    def stream(self, **options: Any) -> Any:
        return self.spark.readStream.format("recorder").options(log=str(self.path), **options).load()

    def writing(self, frame: Any, output_mode: str = "append") -> Any:
        writer = frame.writeStream.format("recorder").option("log", str(self.path)).outputMode(output_mode)
        return writer.option("checkpointLocation", self.checkpoint)


@pytest.fixture
def recorded(spark: Any, tmp_path: Path) -> Recorded:
    return Recorded(spark, tmp_path)


def run_all(writer: Any) -> Any:
    """Run until the source has nothing more, and stop."""
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    return query


def test_a_reader_that_can_take_filters_fails_every_read_while_spark_does_not_offer_them(recorded: Recorded) -> None:
    assert recorded.batch().count() == 1
    with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        recorded.batch(filters="yes").count()


def test_streams_have_no_methods_for_filters_limits_or_metrics(recorded: Recorded) -> None:
    methods = {name for name in dir(DataSourceStreamReader) if not name.startswith("_")}
    assert methods.isdisjoint({"pushFilters", "pushLimit", "pruneColumns", "metrics"})
    query = run_all(recorded.stream().writeStream.format("noop").option("checkpointLocation", recorded.checkpoint))
    assert dict(query.lastProgress["sources"][0]["metrics"]) == {}


def test_columns_are_not_pruned_and_no_limit_is_pushed_and_no_arrow_column_reaches_spark(recorded: Recorded) -> None:
    plan = recorded.batch().select("n").limit(1)._jdf.queryExecution().executedPlan().toString()
    assert "text#" in plan
    assert "Limit 1" in plan
    assert "ColumnarToRow" not in plan


def test_a_limit_of_a_micro_batch_is_one_number_of_rows_files_or_bytes() -> None:
    limits = {name for name, kind in vars(admission).items() if isinstance(kind, type) and name.startswith("Read")}
    assert limits == {"ReadLimit", "ReadAllAvailable", "ReadMinRows", "ReadMaxRows", "ReadMaxFiles", "ReadMaxBytes"}
    assert set(vars(admission.ReadMinRows(1))) == {"min_rows"}


def test_equal_offsets_are_equal_texts(recorded: Recorded) -> None:
    query = recorded.stream(phantom="yes").writeStream.format("noop")
    query = query.option("checkpointLocation", recorded.checkpoint).start()
    try:
        # Nothing is new after the first batch, and there are batches all the same.
        until(lambda: len(committed(recorded.checkpoint)) >= 3 or not query.isActive, "there are three batches")
        assert len(committed(recorded.checkpoint)) >= 3
    finally:
        query.stop()


def test_the_source_hears_that_a_batch_is_done_when_the_next_one_begins_and_never_of_the_last(
    recorded: Recorded,
) -> None:
    run_all(recorded.stream().writeStream.format("noop").option("checkpointLocation", recorded.checkpoint))
    assert committed(recorded.checkpoint) == [0, 1, 2]
    reported = [line for line in recorded.lines if line.startswith("done")]
    assert reported == ["done 1", "done 2"]
    assert recorded.lines.index("done 1") > recorded.lines.index("plan 1")


def test_each_commit_of_a_sink_is_made_by_a_fresh_writer(recorded: Recorded) -> None:
    run_all(recorded.writing(recorded.stream()))
    commits = [line for line in recorded.lines if line.startswith("commit")]
    assert commits == [f"commit {number} by a writer with 1" for number in range(BATCHES)]


def test_complete_comes_as_overwrite_and_update_does_not_come(recorded: Recorded) -> None:
    counts = recorded.stream().groupBy("text").count()
    with pytest.raises(Exception, match="does not support Update mode"):
        run_all(recorded.writing(counts, "update"))
    run_all(recorded.writing(counts, "complete"))
    assert {line for line in recorded.lines if line.startswith("overwrite")} == {"overwrite True"}


def test_continuous_reading_is_not_for_python(recorded: Recorded) -> None:
    writer = recorded.stream().writeStream.format("noop").option("checkpointLocation", recorded.checkpoint)
    with pytest.raises(Exception, match=r"(?i)continuous"):
        writer.trigger(continuous="1 second").start().awaitTermination(30)


def test_by_default_spark_takes_the_file_manager_that_asks_readlink_for_a_local_checkpoint(
    spark: Any, tmp_path: Path
) -> None:
    # `FileContext` has no other way to a file's status without a native Hadoop library. `spark_session` names the other class.
    ((name, text),) = checkpoint_settings(spark.version).items()
    managers = spark._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
    folder = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path))
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    assert managers.create(folder, settings).getClass().getName() == text
    settings.unset(name)
    assert managers.create(folder, settings).getClass().getSimpleName() == "FileContextBasedCheckpointFileManager"


def test_a_spark_whose_file_managers_are_not_known_gets_no_setting_for_them() -> None:
    assert checkpoint_settings("3.5.7") == checkpoint_settings("4.9.0") == {}
    older, newer = (checkpoint_settings(version) for version in ("4.0.5", "4.1.4"))
    assert older.keys() == newer.keys()
    assert older != newer


def test_the_expression_with_which_spark_looks_for_a_stop_overflows_the_stack_on_a_long_text(spark: Any) -> None:
    # Why what leaves `foreach_batch` is short.
    streaming = spark._jvm.org.apache.spark.sql.execution.streaming.runtime.StreamExecution
    expression = streaming.PROXY_ERROR().pattern()
    begin = "py4j.protocol.Py4JJavaError: An error occurred while calling o1.save."
    assert not expression.matcher(begin + "x" * 100).find()
    with pytest.raises(Exception, match="StackOverflowError"):
        expression.matcher(begin + "x" * 100_000).find()
