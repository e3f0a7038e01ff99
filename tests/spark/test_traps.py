"""Traps of Spark's Python data source interface (FACTS of the API, each once measured), held shut by a test each."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader

from pylog_spark.testing.spark import checkpoint_settings
from tests.spark.support import Collector, Topic, committed

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_a_read_works_with_filter_pushdown_off_which_is_sparks_default(topic: Topics, spark: Any) -> None:
    from pylog_spark.source.batch import PylogReader

    # A reader that merely defines pushFilters fails every batch read then (DATA_SOURCE_PUSHDOWN_DISABLED).
    assert PylogReader.pushFilters is DataSourceReader.pushFilters
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"
    one = topic()
    one.put(["a", "b"])
    assert one.read().where("offset = 1").count() == 1


def test_a_filter_gives_the_same_rows_with_pushdown_on(topic: Topics, spark: Any) -> None:
    one = topic()
    one.put(["a", "b"])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert [row.value for row in one.read().where("offset = 1").collect()] == [b"b"]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_an_idle_query_makes_no_batches(topic: Topics, checkpoint: str) -> None:
    # Spark compares offsets as JSON text: one key in another order, and every trigger is a batch.
    one = topic(partitions=12)
    for partition in range(12):
        one.put(["a"], partition)
    run = Collector(checkpoint)
    query = run.start(one.read_stream())
    for _ in range(5):
        query.processAllAvailable()
    query.stop()
    assert committed(checkpoint) == [0]
    assert len(run.values) == 12


def test_trigger_once_takes_everything_whatever_the_rate_limit(topic: Topics, checkpoint: str) -> None:
    one = topic()
    one.put(["a", "b", "c"])
    run = Collector(checkpoint)
    query = run.start(one.read_stream(maxOffsetsPerTrigger=1, minOffsetsPerTrigger=1), once=True)
    assert query.awaitTermination(60)
    assert run.sizes == [3]


def test_spark_drives_admission_control_and_available_now() -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

    from pylog_spark.options import STREAM, read_options
    from pylog_spark.source.partition import RangeSource
    from pylog_spark.source.stream import stream_reader

    def reader(**options: str) -> Any:
        given = read_options({"bootstrap.servers": "b:1", "subscribe": "t", **options}, STREAM)
        return stream_reader(given, RangeSource(given.client, ("value",), {}, 1, True))

    assert isinstance(reader(), SupportsTriggerAvailableNow)
    assert len(inspect.signature(reader().latestOffset).parameters) == 2
    assert reader().getDefaultReadLimit() == ReadAllAvailable()
    assert reader(maxOffsetsPerTrigger="7").getDefaultReadLimit() == ReadMaxRows(7)


def test_nothing_starts_and_no_socket_opens_when_a_reader_or_writer_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    # Spark's Python daemon forks one process for each worker.
    from pyspark.sql.types import _parse_datatype_string

    import pylog_spark._native as native
    from pylog_spark.datasource import PylogDataSource

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("opened too early")

    for name in ("Client", "RangeReader", "RecordWriter"):
        monkeypatch.setattr(native, name, forbidden)
    read = PylogDataSource({"kafka.bootstrap.servers": "b:1", "subscribe": "t"})
    write = PylogDataSource({"kafka.bootstrap.servers": "b:1", "topic": "t"})
    made = [
        read.reader(_parse_datatype_string("value binary")),
        read.streamReader(_parse_datatype_string("value binary")),
        write.streamWriter(_parse_datatype_string("value string"), False),
    ]
    assert [type(one).__name__ for one in made] == ["PylogReader", "_Reader42", "_StreamWriter"]


def test_workers_find_this_python_although_the_path_has_another(tmp_path: Path, servers: str, topic: Topics) -> None:
    one = topic()
    one.put(["a"])
    trap = tmp_path / "python3"
    trap.write_text("#!/bin/sh\necho the wrong python was started >&2\nexit 1\n")
    trap.chmod(0o755)
    code = (
        "import os\n"
        "for name in ('PYSPARK_PYTHON', 'PYSPARK_DRIVER_PYTHON'): os.environ.pop(name, None)\n"
        f"os.environ['PATH'] = {str(tmp_path)!r} + ':' + os.environ['PATH']\n"
        "from pylog_spark.testing import spark_session\n"
        "spark = spark_session()\n"
        f"frame = spark.read.format('pylog').option('kafka.bootstrap.servers', {servers!r}).option('subscribe', {one.name!r})\n"
        "print('rows', frame.load().count())\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert "rows 1" in done.stdout, done.stderr[-2000:]


def test_every_setting_of_the_example_exists_in_this_spark(spark: Any) -> None:
    text = (Path(__file__).parents[2] / "spark-defaults.conf.example").read_text()
    names = re.findall(r"^(?:# )?(spark\.[\w.]+)  +\S+$", text, re.MULTILINE)
    assert len(names) == 11
    entries = spark._jvm.org.apache.spark.internal.config.ConfigEntry
    unknown = [name for name in names if entries.findEntry(name) is None]
    # Spark knows this one without an entry.
    unlisted = spark._jvm.org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS()
    assert unknown == [unlisted.parent().key()]


def test_commented_settings_of_the_example_show_the_default(spark: Any) -> None:
    text = (Path(__file__).parents[2] / "spark-defaults.conf.example").read_text()
    shown = dict(re.findall(r"^# (spark\.sql\.[\w.]+)  +(\S+)$", text, re.MULTILINE))
    without_default = "spark.sql.streaming.checkpointFileManagerClass"
    assert {without_default: shown.pop(without_default)} == checkpoint_settings(spark.version)
    assert {name: spark.conf.get(name) for name in shown} == shown


def test_a_sentence_is_all_that_an_error_in_a_task_shows_with_the_traceback_hidden(topic: Topics, spark: Any) -> None:
    one = topic()
    spark.conf.set("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true")
    try:
        with pytest.raises(Exception, match="PYLOG_") as caught:
            one.save(spark.createDataFrame([("a", 7)], "value STRING, partition INT"))
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.udf.hideTraceback.enabled")
    assert "Traceback" not in str(caught.value)


def test_large_arrow_types_are_written_as_well(topic: Topics, spark: Any) -> None:
    one = topic()
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        one.save(spark.createDataFrame([("k", "v")], "key STRING, value STRING"))
        assert one.values() == ["v"]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
