"""What a user did wrong comes at once, as one sentence that ends Spark's message."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.support import Topic, error_of, sentence_in

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]
NOBODY = "127.0.0.1:1"


def load(spark: Any, **options: Any) -> Any:
    return spark.read.format("pylog").options(**options).load()


def test_an_unknown_option_fails_load_with_the_nearest_name(spark: Any, servers: str) -> None:
    condition, sentence = error_of(lambda: load(spark, subscrieb="t", **{"kafka.bootstrap.servers": servers}))
    assert (condition, sentence) == ("PYLOG_UNKNOWN_OPTION", "There is no option 'subscrieb'; did you mean subscribe.")


def test_a_client_setting_that_does_not_exist_fails_load(spark: Any, servers: str) -> None:
    given = {"kafka.bootstrap.servers": servers, "kafka.fetch.max.byte": "1"}
    condition, sentence = error_of(lambda: load(spark, subscribe="t", **given))
    assert condition == "PYLOG_INVALID_OPTION"
    assert "did you mean fetch.max.bytes" in sentence


def test_a_missing_topic_fails_load_of_a_batch_and_of_a_stream(topic: Topics) -> None:
    one = topic()
    for read in (one.read, one.read_stream):
        condition, sentence = error_of(lambda read=read: read(subscribe="no-such-topic"))
        assert condition == "PYLOG_UNKNOWN_TOPIC"
        assert "no topic 'no-such-topic'; create it" in sentence


def test_a_missing_partition_is_named(topic: Topics) -> None:
    one = topic()
    condition, sentence = error_of(lambda: one.read(assign=f'{{"{one.name}":[0,9]}}').count())
    assert (condition, f"{one.name}-9" in sentence) == ("PYLOG_UNKNOWN_TOPIC", True)


@pytest.mark.parametrize("way", ["read", "stream", "write"])
def test_an_unreachable_broker_fails_within_seconds(spark: Any, way: str) -> None:
    servers = {"kafka.bootstrap.servers": NOBODY}
    frame = spark.createDataFrame([("a",)], "value STRING")
    actions = {
        "read": lambda: spark.read.format("pylog").options(subscribe="t", **servers).load(),
        "stream": lambda: spark.readStream.format("pylog").options(subscribe="t", **servers).load(),
        "write": lambda: frame.write.format("pylog").options(topic="t", **servers).mode("append").save(),
    }
    started = time.monotonic()
    condition, sentence = error_of(actions[way])
    assert time.monotonic() - started < 10
    assert condition == "PYLOG_UNREACHABLE"
    assert NOBODY in sentence


def test_a_wrong_column_type_of_a_read_names_column_and_type(topic: Topics) -> None:
    one = topic()
    condition, sentence = error_of(lambda: one.read("value STRING").count())
    assert condition == "PYLOG_INVALID_SCHEMA"
    assert sentence.startswith("The column value of a read is BINARY, not STRING")


def test_a_column_that_a_record_does_not_have_is_named(topic: Topics) -> None:
    one = topic()
    condition, sentence = error_of(lambda: one.read("Value BINARY").count())
    assert condition == "PYLOG_INVALID_SCHEMA"
    assert "'Value'; did you mean value?" in sentence


def test_a_wrong_schema_of_a_stream_is_not_hidden_by_sparks_own_clean_up(topic: Topics, checkpoint: str) -> None:
    one = topic()
    frame = one.read_stream("value STRING")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    with pytest.raises(Exception, match="PYLOG_INVALID_SCHEMA") as caught:
        query.awaitTermination(60)
    assert sentence_in(str(caught.value))[0] == "PYLOG_INVALID_SCHEMA"


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("id INT", "A write needs a column value of type STRING or BINARY and the frame has only id"),
        ("value INT", "The column value must be BINARY or STRING to be written, not INT"),
        ("value STRING, key INT", "The column key must be BINARY or STRING to be written, not INT"),
        ("value STRING, partition BIGINT", "The column partition must be INT to be written, not BIGINT"),
        (
            "value STRING, headers MAP<STRING,BINARY>",
            "The column headers must be ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>",
        ),
    ],
)
def test_a_wrong_frame_is_refused_before_any_task_runs(topic: Topics, spark: Any, ddl: str, said: str) -> None:
    one = topic()
    condition, sentence = error_of(lambda: one.save(spark.createDataFrame([], ddl)))
    assert condition == "PYLOG_INVALID_SCHEMA"
    assert sentence.startswith(said)


def test_a_write_needs_a_topic(topic: Topics, spark: Any) -> None:
    frame = spark.createDataFrame([("a",)], "value STRING")
    _, sentence = error_of(lambda: topic().save(frame, topic=None))
    assert sentence == "A write needs a topic: give the option topic or a column topic of type STRING."


def test_overwrite_is_refused_with_what_to_do(topic: Topics, spark: Any) -> None:
    one = topic()
    frame = spark.createDataFrame([("a",)], "value STRING")
    write = frame.write.format("pylog").option("kafka.bootstrap.servers", one.servers).option("topic", one.name)
    condition, sentence = error_of(lambda: write.mode("overwrite").save())
    assert condition == "PYLOG_UNSUPPORTED_MODE"
    assert 'use mode("append")' in sentence


def test_sparks_default_save_mode_is_refused_by_spark_itself(topic: Topics, spark: Any) -> None:
    one = topic()
    frame = spark.createDataFrame([("a",)], "value STRING")
    write = frame.write.format("pylog").option("kafka.bootstrap.servers", one.servers).option("topic", one.name)
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write.save()


def test_an_offset_out_of_range_says_what_the_log_holds(topic: Topics) -> None:
    one = topic()
    one.put(["a", "b"])
    offsets = f'{{"{one.name}":{{"0":9}}}}'
    condition, sentence = error_of(lambda: one.read(startingOffsets=offsets).count())
    assert condition == "PYLOG_OFFSET_OUT_OF_RANGE"
    assert f"asks for offset 9 of {one.name}-0, which holds 0 to 2 (exclusive)" in sentence
    assert one.read(startingOffsets=offsets, failOnDataLoss=False).count() == 0


def test_every_partition_must_be_named(topic: Topics) -> None:
    one = topic(partitions=2)
    condition, sentence = error_of(lambda: one.read(startingOffsets=f'{{"{one.name}":{{"0":0}}}}').count())
    assert condition == "PYLOG_INVALID_OPTION"
    assert f"must name every partition that is read, and lacks {one.name}-1" in sentence


def test_a_time_without_a_record_is_an_error_by_default(topic: Topics) -> None:
    one = topic()
    condition, sentence = error_of(lambda: one.read(startingTimestamp=1).count())
    assert condition == "PYLOG_NO_OFFSET_FOR_TIMESTAMP"
    assert "set startingOffsetsByTimestampStrategy to latest" in sentence


def test_an_option_of_streams_only_is_refused_where_it_has_no_meaning(topic: Topics, checkpoint: str) -> None:
    one = topic()
    frame = one.read_stream(endingOffsets="latest")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    with pytest.raises(Exception, match="The option endingOffsets has no meaning in a stream read"):
        query.awaitTermination(60)
