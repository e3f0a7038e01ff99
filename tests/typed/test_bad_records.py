"""`badRecordsTopic`: what stands in the topic, and that each position stands there once, whatever is repeated, killed, or runs twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from pylog_spark._native import RecordWriter
from pylog_spark.errors import PylogError
from pylog_spark.source import bad_records
from tests.harness import runs
from tests.harness.children import PipedChild
from tests.harness.waiting import let_pass
from tests.spark.support import Topic
from tests.typed import support
from tests.typed.support import rows, schema

INT, LONG, TEXT, BYTES = IntegerType(), LongType(), StringType(), BinaryType()
HEADERS = ArrayType(StructType([StructField("key", TEXT), StructField("value", BYTES)]))
HEADERS_ARROW = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROOT = Path(__file__).parent.parent.parent
ROUNDS = runs.rounds("PYLOG_BAD_RECORDS_ROUNDS", 1, 40)


@pytest.fixture
def topic(make_topic: Callable[..., Topic]) -> Topic:
    """A topic of one partition."""
    return make_topic()


@pytest.fixture
def bad(make_topic: Callable[..., Topic]) -> Topic:
    """A topic for bad records."""
    return make_topic(partitions=2)


def stored(bad: Topic) -> list[tuple[dict[str, Any], bytes | None, list[tuple[str, bytes]]]]:
    """Position, value and headers of all records in a topic of bad records, by position."""
    table = support.read(bad, schema(key=BYTES, value=BYTES, headers=HEADERS))
    found = [] if table is None else table.to_pylist()
    all_of = [
        (json.loads(row["key"]), row["value"], [(header["key"], header["value"]) for header in row["headers"]])
        for row in found
    ]
    return sorted(all_of, key=lambda record: (record[0]["topic"], record[0]["partition"], record[0]["offset"]))


def offsets(bad: Topic) -> list[int]:
    """The source's offsets in a topic of bad records."""
    return [position["offset"] for position, _, _ in stored(bad)]


def test_a_bad_record_is_written_as_it_was_with_where_it_is_from_and_what_is_wrong(topic: Topic, bad: Topic) -> None:
    (described,) = topic.client.describe_topics([topic.name])
    headers = pa.array([None, [{"key": "h", "value": b"1"}], None], HEADERS_ARROW)
    topic.put(
        ['{"id":1}', '{"id":"x"}', "{"],
        key=pa.array([b"a", b"b", None], pa.binary()),
        headers=headers,
        timestamp=pa.array([5, 6, 7], pa.timestamp("ms")),
    )
    got = rows(topic, schema(id=INT, offset=LONG), valueFormat="json", badRecordsTopic=bad.name)
    assert got == [(1, 0), (None, 1), (None, 2)]
    place = {"topic": topic.name, "topicId": described["topic_id"], "partition": 0}
    name = topic.name.encode()
    assert stored(bad) == [
        (
            {**place, "offset": 1},
            b'{"id":"x"}',
            [
                ("h", b"1"),
                ("pylog.topic", name),
                ("pylog.partition", b"0"),
                ("pylog.offset", b"1"),
                ("pylog.timestamp", b"6"),
                ("pylog.key", b"b"),
                ("pylog.error", b"the value has a part that does not fit its column's type (field id)"),
            ],
        ),
        (
            {**place, "offset": 2},
            b"{",
            [
                ("pylog.topic", name),
                ("pylog.partition", b"0"),
                ("pylog.offset", b"2"),
                ("pylog.timestamp", b"7"),
                ("pylog.error", b"the value is no JSON"),
            ],
        ),
    ]


@pytest.mark.parametrize("batch_bytes", [1, 1_500_000])
def test_records_that_are_left_out_are_in_the_topic_and_in_no_row(topic: Topic, bad: Topic, batch_bytes: int) -> None:
    topic.put(["{"] * 50 + ['{"id":1}'])
    options = {"valueFormat": "json", "mode": "DROPMALFORMED", "badRecordsTopic": bad.name, "batchBytes": batch_bytes}
    assert rows(topic, schema(id=INT), **options) == [(1,)]
    assert offsets(bad) == list(range(50))


def test_keys_and_values_are_judged_without_a_column_of_theirs(topic: Topic, bad: Topic) -> None:
    topic.put(["{}", "{", None], key=pa.array([b"12345678", b"12345678", b"x"], pa.binary()))
    typed = {"valueFormat": "json", "keyFormat": "long", "badRecordsTopic": bad.name}
    assert rows(topic, schema(offset=LONG), **typed) == [(0,), (1,), (2,)]
    assert [(position["offset"], value) for position, value, _ in stored(bad)] == [(1, b"{"), (2, None)]


def test_a_record_that_was_read_before_is_not_written_again(topic: Topic, bad: Topic) -> None:
    topic.put(["{" if number % 2 else f'{{"id":{number}}}' for number in range(20)])
    typed = {"valueFormat": "json", "badRecordsTopic": bad.name}
    rows(topic, schema(id=INT), **typed, startingOffsets=f'{{"{topic.name}":{{"0":10}}}}')
    assert offsets(bad) == [11, 13, 15, 17, 19]
    rows(topic, schema(id=INT), **typed, maxRecordsPerPartition=3)
    rows(topic, schema(id=TEXT), **typed)
    assert offsets(bad) == list(range(1, 20, 2))


@pytest.mark.parametrize("most", [4_000_000, 3])
def test_many_that_are_there_already_and_some_that_are_not_are_told_apart(
    topic: Topic, bad: Topic, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bad_records, "_OFFSETS_MAX", most)
    monkeypatch.setattr(bad_records, "_MOST_BYTES", 1)  # each batch is written for itself
    topic.put(["{"] * 60)
    typed = {"valueFormat": "json", "badRecordsTopic": bad.name, "batchBytes": 10}
    rows(topic, schema(id=INT), **typed, filterOffset="..10,20..30,50..")
    rows(topic, schema(id=INT), **typed)
    assert offsets(bad) == list(range(60))


def test_a_process_that_has_not_looked_before_finds_what_is_there(topic: Topic, bad: Topic) -> None:
    topic.put(["{"] * 5)
    for _ in range(3):
        rows(topic, schema(id=INT), valueFormat="json", badRecordsTopic=bad.name)
        bad_records._seen.clear()
    assert offsets(bad) == list(range(5))


def test_a_topic_that_was_made_again_has_positions_of_its_own(topic: Topic, bad: Topic) -> None:
    typed = {"valueFormat": "json", "badRecordsTopic": bad.name}
    topic.put(["{"])
    rows(topic, schema(id=INT), **typed)
    topic.recreate()
    topic.put(["{{"])
    rows(topic, schema(id=INT), **typed)
    assert sorted(value for _, value, _ in stored(bad) if value) == [b"{", b"{{"]


def test_a_topic_of_bad_records_that_was_made_again_is_filled_again(topic: Topic, bad: Topic) -> None:
    typed = {"valueFormat": "json", "badRecordsTopic": bad.name}
    topic.put(["{"] * 3)
    rows(topic, schema(id=INT), **typed)
    bad.recreate()
    rows(topic, schema(id=INT), **typed)
    assert offsets(bad) == [0, 1, 2]


@pytest.mark.parametrize("committed", [True, False])
def test_what_a_killed_attempt_left_stands_there_once(topic: Topic, bad: Topic, committed: bool) -> None:
    (described,) = topic.client.describe_topics([topic.name])
    topic.put(["{"] * 3)
    key = bad_records.beginning(topic.name, described["topic_id"], 0) + b"1}"
    # An attempt that had written one record when it was killed.
    killed = RecordWriter(
        {"bootstrap.servers": topic.servers},
        bad.name,
        transactional_id=f"{bad_records.PREFIX}{bad.name}.{topic.name}.0",
    )
    killed.begin()
    killed.write(pa.record_batch({"key": pa.array([key], pa.binary()), "value": pa.array([b"{"], pa.binary())}))
    killed.flush()
    if committed:
        killed.end(True)
    killed.close()
    bad_records._seen.clear()
    values = support.read(topic, schema(id=INT), valueFormat="json", badRecordsTopic=bad.name)
    assert values.num_rows == 3
    keys = support.read(bad, schema(key=BYTES))["key"].to_pylist()
    assert sorted(json.loads(key)["offset"] for key in keys) == [0, 1, 2]


def attempts(topic: Topic, bad: Topic, number: int) -> list[PipedChild]:
    """So many processes that are about to read the topic."""
    command = [sys.executable, "-m", "tests.typed.bad_reader", topic.servers, topic.name, bad.name]
    started = [PipedChild(command, cwd=ROOT) for _ in range(number)]
    for process in started:
        assert process.line() == "ready"
    return started


@pytest.mark.slow
@pytest.mark.timeout(3600 if runs.LONG else 300)
def test_of_attempts_that_run_at_once_and_are_killed_each_record_stands_there_once(
    make_topic: Callable[..., Topic], bad: Topic
) -> None:
    topic = make_topic(partitions=2)
    drawn = random.Random(runs.seed("PYLOG_BAD_RECORDS_SEED"))
    for each in range(ROUNDS):
        for partition in range(2):
            topic.put(["{"] * 40, partition)
        processes = attempts(topic, bad, 3)
        for process in processes:
            process.say("go")
        # Somewhere between the beginning and the end of what it does.
        let_pass(drawn.uniform(0, 0.3))
        processes[0].kill()
        said = [process.rest(120) for process in processes]
        assert said[1:] == ["done\n", "done\n"]
        found = [(position["partition"], position["offset"]) for position, _, _ in stored(bad)]
        assert found == [(partition, number) for partition in range(2) for number in range(40 * (each + 1))]


@pytest.mark.long  # two drivers; what they write with is killed and repeated above
@pytest.mark.timeout(600)
def test_of_micro_batches_that_a_killed_driver_leaves_and_tasks_repeat_each_record_stands_there_once(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    topic, *bad = make_topic(partitions=2), make_topic(), make_topic(partitions=2)
    for partition in range(2):
        topic.put(["{" if number % 10 == 9 else f'{{"id":{number}}}' for number in range(40)], partition)
    names = [each.name for each in bad]

    def run(end: str) -> int:
        words = [topic.servers, topic.name, str(tmp_path), end, *names]
        return subprocess.run(
            [sys.executable, "-m", "tests.typed.bad_driver", *words], cwd=ROOT, check=False, timeout=250
        ).returncode

    assert run("kill") == -9
    assert [sorted(offsets(each)) for each in bad] == [sorted([9, 19, 29, 39] * 2)] * 2
    assert run("stay") == 0
    assert [offsets(each) for each in bad] == [[9, 19, 29, 39] * 2] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "FAILFAST", "valueFormat": "json"}, "badRecordsTopic needs a mode other than FAILFAST"),
        ({}, "badRecordsTopic needs valueFormat or keyFormat beside it"),
        ({"valueFormat": "json", "badRecordsTopic": "{topic}"}, "which the query reads itself"),
        (
            {"valueFormat": "json", "subscribe": "", "subscribePattern": ".*"},
            "which the query reads itself",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(topic: Topic, bad: Topic, options: dict[str, str], said: str) -> None:
    given = {"badRecordsTopic": bad.name, **options}
    given["badRecordsTopic"] = given["badRecordsTopic"].format(topic=topic.name)
    with pytest.raises(PylogError, match=said):
        support.read(topic, schema(value=BYTES), **given)


def test_a_record_that_the_topic_does_not_take_ends_the_read_with_a_sentence(
    topic: Topic, make_topic: Callable[..., Topic]
) -> None:
    small = make_topic(max_message_bytes="200")
    topic.put(["{" + " " * 1000])
    with pytest.raises(PylogError, match=f"Writing bad records to {small.name}: .*max.message.bytes"):
        rows(topic, schema(id=INT), valueFormat="json", badRecordsTopic=small.name)
