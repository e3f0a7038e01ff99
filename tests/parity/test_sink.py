"""Writing: which column does what, what ends up in the log, in batches and in streams."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.runs import mostly_long
from tests.parity.compare import Ways
from tests.parity.ways import Query, Way, outcome

HEADERS = "array<struct<key:string,value:binary>>"
READ = ("key", "value", "headers")


def save(way: Way, frame: Any, mode: str = "append", **options: Any) -> None:
    """Write a frame in one batch; to the topic ``t`` unless `topic` says another, or None."""
    way.writer(frame.coalesce(1).write, **options).mode(mode).save()


def written(way: Way, word: str = "t") -> list[tuple[Any, ...]]:
    """The partition, key, value and headers of what is in a topic."""
    return way.read(("partition", *READ), subscribe=way.name(word), includeHeaders="true")


def one_row(way: Way, **columns: str) -> Any:
    """A frame of one row, each column an SQL expression; ``TOPIC`` stands for the name of the topic ``t``."""
    expressions = [f"{sql.replace('TOPIC', way.name())} as {name}" for name, sql in columns.items()]
    return way.spark.range(1).selectExpr(*expressions)


def test_a_frame_with_all_columns_is_in_the_log_as_it_was(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("t", 3)
        rows = [
            ("k1", "v1", 2, [("a", b"b")]),
            ("k2", "v2", 1, [("c", b"d"), ("c", None), ("", b"")]),
            (None, "v3", 0, None),
            ("k4", None, 2, []),
            ("", "", 0, None),
        ]
        frame = way.spark.createDataFrame(rows, f"key string, value string, partition int, headers {HEADERS}")
        save(way, frame.selectExpr("*", "partition * 7 as `left alone`"))
        return written(way)

    rows = ways.same(scenario)
    assert (2, b"k4", None, None) in rows
    assert (1, b"k2", b"v2", [("c", b"d"), ("c", None), ("", b"")]) in rows


def test_the_topic_is_the_option_or_else_the_column(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("t")
        way.topic("u")
        save(way, one_row(way, topic="'TOPIC'", value="'by column'"), topic=None)
        save(way, one_row(way, topic="'no such topic'", value="'by option'"), topic=f" {way.name('u')} ")
        save(way, one_row(way, topic="cast(null as string)", value="'null column'"), topic=way.name("u"))
        return written(way), written(way, "u")

    by_column, by_option = ways.same(scenario)
    assert [row[2] for row in by_column] == [b"by column"]
    assert [row[2] for row in by_option] == [b"by option", b"null column"]


def test_keys_go_to_the_same_partitions_and_a_partition_column_wins(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        for word in ("keyed", "column", "null"):
            way.topic(word, 4)
        keyed = way.spark.range(40).selectExpr(
            "cast(id as string) as key", "cast(cast(id as string) as binary) as value"
        )
        save(way, keyed, topic=way.name("keyed"))
        save(way, keyed.selectExpr("*", "2 as partition"), topic=way.name("column"))
        save(way, keyed.selectExpr("*", "cast(null as int) as partition"), topic=way.name("null"))
        return [[(row[1], row[0]) for row in written(way, word)] for word in ("keyed", "column", "null")]

    keyed, column, null = ways.same(scenario)
    assert len({partition for _, partition in keyed}) == 4
    assert {partition for _, partition in column} == {2}
    assert null == keyed


def test_one_tasks_order_is_kept(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        save(way, way.spark.range(5_000).selectExpr("cast(id as string) as value"))
        return [int(row[2]) for row in written(way)]

    assert ways.same(scenario) == [*range(5_000)]


def test_large_values_pass_through_a_small_buffer(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        frame = way.spark.range(200).selectExpr("repeat(cast(id % 10 as string), 15000) as value")
        save(way, frame, **{"kafka.buffer.memory": "65536"})
        return [(row[2][:1], len(row[2])) for row in written(way)]

    assert len(ways.same(scenario)) == 200


def test_producer_settings_are_passed_through(ways: Ways) -> None:
    settings = {
        "kafka.compression.type": "gzip",
        "kafka.linger.ms": "5",
        "kafka.batch.size": "1000",
        "kafka.acks": "-1",
    }

    def scenario(way: Way) -> object:
        way.topic()
        for name, text in settings.items():
            save(way, one_row(way, value=f"'{name}'"), **{name: text})
        return [row[2].decode() for row in written(way)]

    assert ways.same(scenario) == [*settings]


def test_a_column_timestamp_is_the_records_time(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        save(way, one_row(way, value="'a'", timestamp="timestamp'2001-02-03 04:05:06'"))
        return [row[0].year == 2001 for row in way.read(("timestamp",))]

    assert ways.differ("timestamp column of a write", scenario) == ([False], [True])


def test_fewer_acknowledgements_do_not_go_with_exactly_once(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        options = {"kafka.acks": "1"}
        done = outcome(lambda: save(way, one_row(way, value="'a'"), **options), "exactly-once delivery")
        return done or len(written(way))

    assert ways.differ("acks", scenario) == (1, "refused")


def test_rows_are_written_in_a_transaction_by_default(ways: Ways) -> None:
    def scenario(word: str, **options: str) -> Any:
        def run(way: Way) -> object:
            given = {} if way.is_connector else options
            save(way, way.spark.range(3).selectExpr("cast(id as string) as value"), topic=way.topic(word), **given)
            return way.ends(word)

        return run

    assert ways.differ("delivery", scenario("once")) == ([3], [4])
    assert ways.same(scenario("at-least-once", delivery="at-least-once")) == [3]


def streamed(way: Way, frame: Any, mode: str, checkpoint: str = "out", **options: Any) -> None:
    """Write a stream to the end of what is there."""
    writer = way.writer(frame.writeStream, **options).option("checkpointLocation", str(way.folder / checkpoint))
    query = writer.outputMode(mode).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()


@pytest.mark.long  # tests/spark/test_sink.py
def test_a_stream_is_appended_batch_by_batch(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic("from", 2)
        way.topic("t", 2)
        way.topic("u", 2)
        way.put("from", [f"{n}" for n in range(6)], 0)
        source = {"subscribe": way.name("from"), "startingOffsets": "earliest", "maxOffsetsPerTrigger": 3}
        frame = way.stream_reader(**source).load()
        by_option = frame.selectExpr("value as key", "value", "'no such topic' as topic", "1 as partition")
        by_column = frame.selectExpr("value", f"'{way.name('u')}' as topic", "0 as partition")
        for _ in range(2):
            streamed(way, by_option, "append")
            streamed(way, by_column, "append", "columns", topic=None)
            way.put("from", ["more"], 1)
        return written(way), written(way, "u")

    by_option, by_column = ways.same(scenario)
    assert [row[2] for row in by_option] == [b"0", b"1", b"2", b"3", b"4", b"5", b"more"]
    assert [row[2] for row in by_column] == [row[2] for row in by_option]


@pytest.mark.long  # tests/spark/test_sink.py
def test_complete_mode_appends_the_whole_result_each_time(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        for _ in range(2):
            counts = way.lines("a", "b", "a").groupBy("value").count()
            streamed(way, counts.selectExpr("value as key", "cast(count as string) as value"), "complete")
        return sorted((row[1], row[2]) for row in written(way))

    assert ways.same(scenario) == [(b"a", b"2"), (b"a", b"4"), (b"b", b"1"), (b"b", b"2")]


def test_update_mode_is_refused_by_spark(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        done = outcome(lambda: streamed(way, way.lines("a"), "update"), "update")
        return done or [row[2] for row in written(way)]

    assert ways.differ("output mode update", scenario) == ([b"a"], "refused")


def test_a_batch_must_say_append(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        done = outcome(lambda: way.writer(one_row(way, value="'a'").write).save(), "SAVE_MODE")
        return done or [row[2] for row in written(way)]

    assert ways.differ("save mode", scenario) == ([b"a"], "refused")


@pytest.mark.parametrize("situation", ["save mode overwrite", "save mode ignore"])
def test_other_save_modes_are_refused(ways: Ways, situation: str) -> None:
    def scenario(way: Way) -> None:
        way.topic()
        save(way, one_row(way, value="'a'"), situation.split()[-1])

    ways.refused(situation, scenario)


WRONG_FRAMES: dict[str, tuple[str, dict[str, str]]] = {
    "no value": ("a frame without value", {"topic": "'TOPIC'", "key": "'k'"}),
    "no topic": ("no topic to write to", {"key": "'k'", "value": "'v'"}),
    "a null topic": ("a row without a topic", {"topic": "cast(null as string)", "value": "'v'"}),
    "topic is a number": ("a column of a wrong type", {"topic": "1", "value": "'v'"}),
    "value is a number": ("a column of a wrong type", {"topic": "'TOPIC'", "value": "1"}),
    "key is a number": ("a column of a wrong type", {"topic": "'TOPIC'", "key": "1", "value": "'v'"}),
    "partition is a text": ("a column of a wrong type", {"topic": "'TOPIC'", "value": "'v'", "partition": "'1'"}),
    "headers are a map": ("a column of a wrong type", {"topic": "'TOPIC'", "value": "'v'", "headers": "map('a', 'b')"}),
    "an unknown topic": ("an unknown topic", {"topic": "'nowhere'", "value": "'v'"}),
    "a partition that is not there": (
        "an unknown partition to write to",
        {"topic": "'TOPIC'", "value": "'v'", "partition": "7"},
    ),
}


@pytest.mark.parametrize("case", WRONG_FRAMES)
@pytest.mark.parametrize("kind", mostly_long(["batch", "stream"], "batch"))
def test_a_frame_that_is_no_records_is_refused(ways: Ways, kind: str, case: str) -> None:
    situation, columns = WRONG_FRAMES[case]

    def scenario(way: Way) -> None:
        way.topic()
        options = {"topic": None, "kafka.max.block.ms": "1000", "kafka.delivery.timeout.ms": "3000"}
        options["kafka.request.timeout.ms"] = "2000"
        if kind == "batch":
            save(way, one_row(way, **columns), **options)
            return
        expressions = [f"{sql.replace('TOPIC', way.name())} as {name}" for name, sql in columns.items()]
        streamed(way, way.lines("a").selectExpr(*expressions), "append", **options)

    ways.refused(situation, scenario)


@pytest.mark.parametrize("setting", ["kafka.key.serializer", "kafka.value.serializer"])
def test_serializers_are_refused(ways: Ways, setting: str) -> None:
    def scenario(way: Way) -> None:
        way.topic()
        save(way, one_row(way, value="'v'"), **{setting: "foo"})

    ways.refused("a client setting that is Spark's own", scenario)


@pytest.mark.long  # tests/spark/test_sink.py
def test_what_was_read_can_be_written_back(ways: Ways) -> None:
    from tests.parity.test_batch import COLUMNS
    from tests.parity.ways import Record

    def scenario(way: Way) -> object:
        way.topic("from", 2)
        way.topic("t", 2)
        way.put("from", [Record("a", "k", headers=[("h", b"1")]), Record(None, "k")], 1)
        frame = way.reader(subscribe=way.name("from"), includeHeaders="true").load()
        columns = [name for name in COLUMNS if name not in ("topic", "timestamp")]
        save(way, frame.select(*columns, "headers"))
        return written(way)

    assert ways.same(scenario) == [(1, b"k", b"a", [("h", b"1")]), (1, b"k", None, None)]


def test_the_sinks_progress_counts_rows(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        query = Query(way, way.folder / "progress")
        writer = way.writer(way.lines("1", "2", "3").writeStream).option(
            "checkpointLocation", str(way.folder / "progress")
        )
        query.query = writer.trigger(availableNow=True).start()
        assert query.query.awaitTermination(60)
        return max(progress["sink"]["numOutputRows"] for progress in query.query.recentProgress)

    assert ways.same(scenario) == 3


@pytest.mark.long  # tests/spark/test_sink_topics.py
def test_a_target_that_is_made_again_under_a_running_stream_is_noticed(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        way.topic()
        query = Query(way, way.folder / "again")
        writer = way.writer(way.lines("before").writeStream).option("checkpointLocation", str(query.checkpoint))
        query.query = writer.start()

        def gone_on() -> object:
            query.query.processAllAvailable()
            return [row[2] for row in written(way)]

        try:
            assert gone_on() == [b"before"]
            way.delete()
            way.topic()
            way.lines("after")
            return outcome(gone_on, "PYLOG_TOPIC_RECREATED")
        finally:
            query.stop()

    connector, pylog = ways.differ("a topic that is created again during a write", scenario)
    assert (connector, pylog) == ([b"after"], "refused")
