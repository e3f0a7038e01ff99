"""Traps of Spark's Python data source interface (FACTS of the API, each once measured), held shut by a test each. Those that need no Spark:
``tests/unit/spark/test_datasource.py``."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader

from pylog_spark.testing.spark import checkpoint_settings
from tests.spark.support import Collector, Topic, committed

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_a_read_works_with_filter_pushdown_off_which_is_sparks_default(make_topic: Topics, spark: Any) -> None:
    from pylog_spark.source.batch import PylogReader

    # A reader that merely defines pushFilters fails every batch read then (DATA_SOURCE_PUSHDOWN_DISABLED).
    assert PylogReader.pushFilters is DataSourceReader.pushFilters
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"
    topic = make_topic()
    topic.put(["a", "b"])
    assert topic.read().where("offset = 1").count() == 1


def test_a_filter_gives_the_same_rows_with_pushdown_on(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    topic.put(["a", "b"])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert [row.value for row in topic.read().where("offset = 1").collect()] == [b"b"]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_an_idle_query_makes_no_batches(make_topic: Topics, checkpoint: str) -> None:
    # Spark compares offsets as JSON text: one key in another order, and every trigger is a batch.
    topic = make_topic(partitions=12)
    for partition in range(12):
        topic.put(["a"], partition)
    run = Collector(checkpoint)
    query = run.start(topic.read_stream())
    for _ in range(5):
        query.processAllAvailable()
    query.stop()
    assert committed(checkpoint) == [0]
    assert len(run.values) == 12


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


@pytest.mark.long  # test_errors.py
def test_a_sentence_is_all_that_an_error_in_a_task_shows_with_the_traceback_hidden(
    make_topic: Topics, spark: Any
) -> None:
    topic = make_topic()
    spark.conf.set("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true")
    try:
        with pytest.raises(Exception, match="PYLOG_") as caught:
            topic.save(spark.createDataFrame([("a", 7)], "value STRING, partition INT"))
    finally:
        spark.conf.unset("spark.sql.execution.pyspark.udf.hideTraceback.enabled")
    assert "Traceback" not in str(caught.value)


@pytest.mark.long  # tests/reading/test_writing.py
def test_large_arrow_types_are_written_as_well(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        topic.save(spark.createDataFrame([("k", "v")], "key STRING, value STRING"))
        assert topic.values() == ["v"]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
