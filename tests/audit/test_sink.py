"""The sink says what it has written, exactly once: tasks, batches and drivers that run again make no difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.audit import check
from pylog_spark.client import Admin
from tests.audit.support import BEGIN_MS, MINUTE, Audited
from tests.spark.support import Topic, committed, error_of

Topics = Callable[..., Topic]
BEGIN = f"timestamp_millis({BEGIN_MS})"


def options(audited: Audited, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": audited.servers, "auditTopic": audited.audit, "auditWindow": "1m", **more}


def save(frame: Any, audited: Audited, **more: str) -> None:
    frame.write.format("pylog").options(**options(audited, **more)).mode("append").save()


@pytest.mark.long  # a batch that is written twice: below
def test_rows_of_a_batch_are_counted_by_topic_and_by_the_window_of_their_timestamps(
    spark: Any, audited: Audited, make_topic: Topics
) -> None:
    other = make_topic()
    minutes = f"{BEGIN} + make_interval(0, 0, 0, 0, 0, id % 5)"
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "string(id) AS value",
        f"IF(id % 10 = 0, '{other.name}', '{audited.topic}') AS topic",
        f"IF(id % 10 = 1, NULL, {minutes}) AS timestamp",
    )
    save(rows, audited)
    report = audited.check(delay_ms=None)
    assert (report.differences, report.records) == ((), 1000)
    assert report.windows >= 6  # those of the two topics, and now
    audited.double(3)
    assert audited.check().differences == (audited.difference(3, 200, 201),)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_rows_without_timestamps_are_counted_in_the_window_in_which_they_are_written(
    spark: Any, audited: Audited, delivery: str
) -> None:
    save(spark.range(500).selectExpr("string(id) AS value"), audited, topic=audited.topic, delivery=delivery)
    report = audited.check(delay_ms=None)
    assert (report.differences, report.records) == ((), 500)


@pytest.mark.long  # a batch with a name that is written twice: below
def test_a_batch_of_a_stream_that_runs_again_counts_once_and_late_rows_count_in_their_own_windows(
    spark: Any, audited: Audited, make_topic: Topics, checkpoint: str
) -> None:
    source = make_topic(partitions=2)
    frame = source.read_stream(maxOffsetsPerTrigger="40").selectExpr(
        "value", f"{BEGIN} + make_interval(0, 0, 0, 0, 0, int(string(value))) AS timestamp"
    )

    def run() -> None:
        source.save_stream(frame, checkpoint, topic=audited.topic, auditTopic=audited.audit, auditWindow="1m")

    source.put([f"{number % 3 + 5}" for number in range(100)])
    run()
    newest = committed(checkpoint)[-1]
    for name in (f"{newest}", f".{newest}.crc"):  # as if the driver had died before it noted the batch as done
        (Path(checkpoint) / "commits" / name).unlink()
    source.put([f"{number % 3}" for number in range(60)], partition=1)
    run()
    report = audited.check()
    assert (report.differences, report.records, report.windows) == ((), 160, 6)


def test_a_write_that_fails_has_said_nothing_and_the_next_one_all(spark: Any, audited: Audited) -> None:
    frame = spark.range(40).selectExpr("IF(id = 39, raise_error('boom'), string(id)) AS value").repartition(2)
    with pytest.raises(Exception, match="boom"):
        save(frame, audited, topic=audited.topic)
    save(spark.range(40).selectExpr("string(id) AS value"), audited, topic=audited.topic)
    report = audited.check(delay_ms=None)
    assert (report.differences, report.records) == ((), 40)


def test_a_batch_with_a_name_that_is_written_twice_counts_once(spark: Any, audited: Audited) -> None:
    for _ in range(2):
        frame = spark.range(70).selectExpr("string(id) AS value")
        save(frame, audited, topic=audited.topic, txnAppId="load", txnVersion="1")
    report = audited.check(delay_ms=None)
    assert (report.differences, report.records) == ((), 70)


@pytest.mark.parametrize(
    ("given", "condition", "words"),
    [
        ({"auditTopic": "{topic}"}, "PYLOG_INVALID_OPTION", "a topic of their own"),
        ({"auditTopic": None}, "PYLOG_INVALID_OPTION", "auditWindow needs auditTopic"),
        ({"auditWindow": "10ms"}, "PYLOG_INVALID_OPTION", "from 1s to 365d"),
        ({"topic": "{compacted}"}, "PYLOG_INVALID_OPTION", "compacted"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_written(
    spark: Any, audited: Audited, given: dict[str, str | None], condition: str, words: str
) -> None:
    compacted = f"{audited.topic}-compacted"
    with Admin(audited.servers) as admin:
        admin.create_topic(compacted, config={"cleanup.policy": "compact"})
    texts = {name: text and text.format(topic=audited.topic, compacted=compacted) for name, text in given.items()}
    every = {**options(audited, topic=audited.topic), **texts}
    chosen = {name: text for name, text in every.items() if text is not None}
    writer = spark.range(3).selectExpr("string(id) AS value").write.format("pylog").options(**chosen)
    found, sentence = error_of(lambda: writer.mode("append").save())
    assert (found, words in sentence) == (condition, True), sentence
    assert check(audited.servers, audited.audit).windows == 0


def test_more_windows_than_a_task_counts_are_refused_and_nothing_is_written(spark: Any, audited: Audited) -> None:
    rows = spark.range(0, 200_000, 1, 1).selectExpr(
        "'' AS value", f"{BEGIN} + make_interval(0, 0, 0, 0, 0, 0, id) AS timestamp"
    )
    condition, sentence = error_of(lambda: save(rows, audited, topic=audited.topic, auditWindow="1s"))
    assert (condition, "auditWindow" in sentence) == ("PYLOG_INVALID_OPTION", True), sentence
    assert audited.check(audited.topic, delay_ms=None, window_ms=MINUTE).windows == 0
