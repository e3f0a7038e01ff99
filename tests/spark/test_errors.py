"""What a user did wrong comes at once, as one sentence that ends Spark's message. All that can be wrong:
``tests/unit/spark/test_datasource.py``, ``tests/reading/test_refusals.py``."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.ports import nowhere
from tests.spark.support import Topic, error_of, sentence_in

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]
NO_BROKER = nowhere()


def load(spark: Any, **options: Any) -> Any:
    return spark.read.format("pylog").options(**options).load()


def test_an_unknown_option_fails_load_with_the_nearest_name(spark: Any, servers: str) -> None:
    condition, sentence = error_of(lambda: load(spark, subscrieb="t", **{"kafka.bootstrap.servers": servers}))
    assert (condition, sentence) == ("PYLOG_UNKNOWN_OPTION", "There is no option 'subscrieb'; did you mean subscribe?")


def test_a_missing_topic_fails_load_of_a_batch_and_of_a_stream(make_topic: Topics) -> None:
    topic = make_topic()
    for read in (topic.read, topic.read_stream):
        condition, sentence = error_of(lambda read=read: read(subscribe="no-such-topic"))
        assert condition == "PYLOG_UNKNOWN_TOPIC"
        assert "no topic 'no-such-topic'; create it" in sentence


def beginning(error: Exception) -> list[str]:
    """The first lines of what Spark shows: at most its own, "Traceback" and the one frame of ours before the sentence."""
    return str(error).split("\n")[:4]


def test_the_sentence_stands_at_the_beginning_of_what_spark_shows_in_a_batch_and_in_a_stream(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic()
    with pytest.raises(Exception, match="PYLOG_INVALID_SCHEMA") as caught:
        topic.read("value STRING").count()
    assert beginning(caught.value)[-1].startswith("pylog_spark.errors.PylogError: [PYLOG_INVALID_SCHEMA]")
    query = (
        topic.read_stream("value STRING").writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    )
    with pytest.raises(Exception, match="PYLOG_INVALID_SCHEMA") as caught:
        query.awaitTermination(60)
    assert "PylogError: [PYLOG_INVALID_SCHEMA]" in beginning(caught.value)[0]


@pytest.mark.parametrize("way", ["read", "stream", "write"])
def test_an_unreachable_broker_fails_within_seconds(spark: Any, way: str) -> None:
    servers = {"kafka.bootstrap.servers": NO_BROKER}
    frame = spark.createDataFrame([("a",)], "value STRING")
    actions = {
        "read": lambda: spark.read.format("pylog").options(subscribe="t", **servers).load(),
        "stream": lambda: spark.readStream.format("pylog").options(subscribe="t", **servers).load(),
        "write": lambda: frame.write.format("pylog").options(topic="t", **servers).mode("append").save(),
    }
    started = time.monotonic()
    condition, sentence = error_of(actions[way])
    # Clients wait a minute for what they may wait for.
    assert time.monotonic() - started < 30
    assert condition == "PYLOG_UNREACHABLE"
    assert NO_BROKER in sentence


def test_a_wrong_column_type_of_a_read_names_column_and_type(make_topic: Topics) -> None:
    topic = make_topic()
    condition, sentence = error_of(lambda: topic.read("value STRING").count())
    assert condition == "PYLOG_INVALID_SCHEMA"
    assert sentence.startswith("The column value of a read is BINARY, not STRING")


def test_a_wrong_schema_of_a_stream_is_not_hidden_by_sparks_own_clean_up(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic()
    frame = topic.read_stream("value STRING")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    with pytest.raises(Exception, match="PYLOG_INVALID_SCHEMA") as caught:
        query.awaitTermination(60)
    assert sentence_in(str(caught.value))[0] == "PYLOG_INVALID_SCHEMA"


def test_a_wrong_frame_is_refused_before_any_task_runs(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    condition, sentence = error_of(lambda: topic.save(spark.createDataFrame([], "value STRING, partition STRING")))
    assert condition == "PYLOG_INVALID_SCHEMA"
    assert sentence.startswith(
        "The column partition must be INT or BIGINT or SMALLINT or TINYINT to be written, not STRING"
    )


def test_overwrite_is_refused_with_what_to_do(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    frame = spark.createDataFrame([("a",)], "value STRING")
    write = frame.write.format("pylog").option("kafka.bootstrap.servers", topic.servers).option("topic", topic.name)
    condition, sentence = error_of(lambda: write.mode("overwrite").save())
    assert condition == "PYLOG_UNSUPPORTED_MODE"
    assert 'use mode("append")' in sentence


def test_sparks_default_save_mode_is_refused_by_spark_itself(make_topic: Topics, spark: Any) -> None:
    topic = make_topic()
    frame = spark.createDataFrame([("a",)], "value STRING")
    write = frame.write.format("pylog").option("kafka.bootstrap.servers", topic.servers).option("topic", topic.name)
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write.save()
