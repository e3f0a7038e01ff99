"""``pylog checkpoint`` on the checkpoints of real queries: what it shows is what they did, and they go on where it says. Costs 60 s."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from tests import spark_home
from tests.harness.runs import mostly_long
from tests.spark.support import Collector, Topic, committed
from tests.spark.test_versions import patch_releases, table
from tests.spark.versions.environment import python_with_spark

Topics = Callable[..., Topic]
ROOT = Path(__file__).parents[2]
_V2 = "spark.sql.streaming.offsetLog.formatVersion"
_NAMES = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


# The second one, which Spark has to be asked for, is read in tests/unit/checkpoint, too.
@pytest.fixture(params=["1", pytest.param("2", marks=pytest.mark.long)], ids=["offset log v1", "offset log v2"])
def form(request: pytest.FixtureRequest, spark: Any) -> Any:
    """Both formats of Spark's offset log."""
    spark.conf.set(_V2, request.param)
    yield request.param
    spark.conf.unset(_V2)


def pylog(topic: Topic, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `pylog checkpoint` as a user does."""
    command = [sys.executable, "-m", "pylog_spark", "checkpoint", *words]
    environment = {**os.environ, "PYLOG_BOOTSTRAP_SERVERS": topic.servers.partition(",")[0]}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def shown(topic: Topic, *words: str) -> dict[str, Any]:
    done = pylog(topic, *words, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def rewind(topic: Topic, checkpoint: str, *words: str) -> dict[int, tuple[int, int]]:
    """Move a query that is stopped: {partition: (old, new offset)}."""
    done = shown(topic, "rewind", checkpoint, "--stopped", "--execute", *words)
    assert done["executed"]
    return {move["partition"]: (move["offset"], move["new_offset"]) for move in done["offsets"]}


def files(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"v{number:03}" for number in range(first, first + count)]


def test_show_and_lag_are_what_the_query_did(make_topic: Topics, checkpoint: str, form: str) -> None:
    topic = make_topic(partitions=2)
    topic.put(numbered(6), 0)
    topic.put(numbered(2), 1)
    query = Collector(checkpoint).run(topic.read_stream(maxOffsetsPerTrigger=4))
    assert Path(checkpoint, "offsets", "1").read_text().startswith(f"v{form}\n")
    found = shown(topic, "show", checkpoint)
    assert (found["query_id"], found["stateful"]) == (query.id, False)
    assert (found["finished_batch"], found["unfinished_batch"]) == (1, None)
    ends = {(row["source"], row["topic"], row["partition"]): row["end"] for row in found["offsets"]}
    assert ends == {("0", topic.name, 0): 6, ("0", topic.name, 1): 2}
    assert sum(row["records"] for row in found["offsets"]) == 4
    assert query.id in pylog(topic, "show", checkpoint).stdout

    hour_ago = time.time_ns() // 1_000 - 3_600 * 1_000_000
    topic.put(["x" * 1_000] * 5, 1, timestamp=pa.array([hour_ago] * 5, pa.timestamp("us", "UTC")))
    late = {row["partition"]: row for row in shown(topic, "lag", checkpoint)["partitions"]}
    assert {partition: row["lag"] for partition, row in late.items()} == {0: 0, 1: 5}
    assert (late[0]["lag_bytes"], late[0]["behind_ms"]) == (0, 0)
    assert 3_600_000 <= late[1]["behind_ms"] < 3_700_000
    assert 100 < late[1]["lag_bytes"] < 10_000
    table = pylog(topic, "lag", checkpoint)
    assert "Behind by 5 records at the end of batch 1." in table.stderr
    assert table.stdout.split("\n")[0].split() == [
        "SOURCE",
        "TOPIC",
        "PARTITION",
        "OFFSET",
        "END",
        "LAG",
        "BYTES",
        "SECONDS",
    ]


def test_a_query_goes_on_where_it_is_sent_and_batches_keep_counting(
    make_topic: Topics, checkpoint: str, form: str
) -> None:
    topic = make_topic(partitions=2, retention_ms="-1")  # its records are of 1970
    stamps = pa.array([(1_000 + number) * 1_000_000 for number in range(10)], pa.timestamp("us", "UTC"))
    topic.put(numbered(10), 0, timestamp=stamps)
    topic.put(numbered(5, 100), 1)
    frame = topic.read_stream()
    Collector(checkpoint).run(frame)
    assert committed(checkpoint) == [0]

    def next_batch() -> tuple[list[int], list[str]]:
        again = Collector(checkpoint)
        again.run(frame)
        return sorted(again.batches), again.values

    assert rewind(topic, checkpoint, "--topic", f"{topic.name}:0", "--shift-by", "-3") == {0: (10, 7)}
    assert next_batch() == ([1], numbered(3, 7))
    assert rewind(topic, checkpoint, "--to-earliest") == {0: (10, 0), 1: (5, 0)}
    assert next_batch() == ([2], [*numbered(10), *numbered(5, 100)])
    moved = rewind(topic, checkpoint, "--topic", f"{topic.name}:0", "--to-datetime", "1970-01-01T00:16:48")
    assert moved == {0: (10, 8)}
    assert next_batch() == ([3], numbered(2, 8))
    # Ahead, too: what is between is passed over.
    topic.put(numbered(4, 10), 0)
    assert rewind(topic, checkpoint, "--to-latest") == {0: (10, 14), 1: (5, 5)}
    topic.put(["after"], 0)
    assert next_batch() == ([4], ["after"])


def test_without_execute_nothing_changes_and_what_was_replaced_can_be_copied_back(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic()
    topic.put(numbered(3))
    Collector(checkpoint).run(topic.read_stream())
    before = files(checkpoint)
    dry = pylog(topic, "rewind", checkpoint, "--to-earliest")
    assert dry.returncode == 0, dry.stderr
    assert "Nothing is changed without --execute." in dry.stderr
    assert files(checkpoint) == before
    running = pylog(topic, "rewind", checkpoint, "--to-earliest", "--execute")
    assert running.returncode == 1
    assert "may be running: stop it, and say so with --stopped" in running.stderr
    assert files(checkpoint) == before

    backup = Path(checkpoint, shown(topic, "rewind", checkpoint, "--to-earliest", "--execute", "--stopped")["backup"])
    assert files(checkpoint) != before
    shutil.copytree(backup, checkpoint, dirs_exist_ok=True)
    again = Collector(checkpoint)
    again.run(topic.read_stream())
    assert again.values == []


@pytest.mark.long  # without a rewind: test_sink_once.py
def test_a_sink_that_writes_once_has_what_is_read_again_and_skips_batches_that_come_again(
    make_topic: Topics, checkpoint: str
) -> None:
    source, target = make_topic(), make_topic()
    source.put(numbered(6))
    frame = source.read_stream(maxOffsetsPerTrigger=2).select("value")
    target.save_stream(frame, checkpoint)
    assert (committed(checkpoint), target.values()) == ([0, 1, 2], numbered(6))
    # The same batches again: the sink has them.
    assert rewind(source, checkpoint, "--to-batch", "0") == {0: (6, 2)}
    target.save_stream(frame, checkpoint)
    assert (committed(checkpoint), target.values()) == ([0, 1, 2], numbered(6))
    # Other batches of the same records: written again.
    assert rewind(source, checkpoint, "--to-offset", "3") == {0: (6, 3)}
    target.save_stream(frame, checkpoint)
    assert (committed(checkpoint), target.values()) == ([0, 1, 2, 3, 4], [*numbered(6), *numbered(3, 3)])


@pytest.mark.long  # offsets: above
@pytest.mark.parametrize(
    "provider",
    mostly_long(["HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"], "HDFSBackedStateStoreProvider"),
)
def test_state_goes_back_with_its_batch_and_stays_where_only_offsets_move(
    make_topic: Topics, checkpoint: str, spark: Any, provider: str
) -> None:
    topic = make_topic()
    topic.put(["a", "b"] * 6)
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass", f"org.apache.spark.sql.execution.streaming.state.{provider}"
    )
    # So that snapshots are made, which must not outlive their batch.
    spark.conf.set("spark.sql.streaming.stateStore.minDeltasForSnapshot", "2")
    try:
        counts = topic.read_stream(maxOffsetsPerTrigger=2).groupBy("value").count()

        def counted() -> Counter[str]:
            seen: Counter[str] = Counter()

            def keep(frame: Any, _batch: int) -> None:
                seen.update(
                    {row["value"].decode(): row["count"] - seen[row["value"].decode()] for row in frame.collect()}
                )

            writer = (
                counts.writeStream.outputMode("complete").foreachBatch(keep).option("checkpointLocation", checkpoint)
            )
            assert writer.trigger(availableNow=True).start().awaitTermination(200)
            return seen

        assert counted() == {"a": 6, "b": 6}
        assert committed(checkpoint) == list(range(6))
        assert shown(topic, "show", checkpoint)["stateful"]
        assert rewind(topic, checkpoint, "--to-batch", "1") == {0: (12, 4)}
        assert committed(checkpoint) == [0, 1]
        assert counted() == {"a": 6, "b": 6}
        assert rewind(topic, checkpoint, "--to-offset", "8") == {0: (12, 8)}
        assert counted() == {"a": 8, "b": 8}
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
        spark.conf.unset("spark.sql.streaming.stateStore.minDeltasForSnapshot")


@pytest.mark.long  # a Spark of its own; the newest is above
@pytest.mark.timeout(900)  # the first run of all installs it
def test_a_checkpoint_of_the_oldest_spark_goes_back_by_time_and_by_batch_with_its_state(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic(retention_ms="-1")  # its records are of 1970

    def put(first: int) -> None:
        stamps = pa.array([(1_000 + number) * 1_000_000 for number in range(first, first + 6)])
        topic.put(["a", "b"] * 3, 0, timestamp=stamps.cast(pa.timestamp("us", "UTC")))

    release = patch_releases()[min(table())]
    python = str(python_with_spark(release))
    given = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_SUBMIT_OPTS": spark_home.JAVA}
    environment = {**os.environ, **given, "PYTHONPATH": str(ROOT)}
    environment.pop("SPARK_HOME", None)

    def counted() -> dict[str, int]:
        command = [python, "-m", "tests.spark.versions.counting", topic.servers, topic.name, checkpoint]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
        lines = [line for line in done.stdout.splitlines() if line.startswith("counted ")]
        assert lines, done.stdout + done.stderr[-4000:]
        said = json.loads(lines[0].removeprefix("counted "))
        assert said["version"] == release
        return dict(said["counts"])

    put(0)
    assert counted() == {"a": 3, "b": 3}
    put(6)
    assert counted() == {"a": 6, "b": 6}
    assert shown(topic, "show", checkpoint)["stateful"]
    assert rewind(topic, checkpoint, "--to-datetime", "1970-01-01T00:16:48") == {0: (12, 8)}
    assert counted() == {"a": 8, "b": 8}
    assert committed(checkpoint) == [0, 1, 2]
    assert rewind(topic, checkpoint, "--to-batch", "0") == {0: (12, 6)}
    topic.put(["a"])
    assert counted() == {"a": 7, "b": 6}


def test_a_batch_that_always_fails_is_passed_over(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic(partitions=2)
    topic.put(numbered(2), 0)
    frame = topic.read_stream()
    Collector(checkpoint).run(frame)
    topic.put(["poison"], 0)
    topic.put(["good"], 1)

    def fail(batch: Any, _number: int) -> None:
        if any(row.value == b"poison" for row in batch.collect()):
            raise ValueError("it cannot be read")

    query = frame.writeStream.foreachBatch(fail).option("checkpointLocation", checkpoint).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException):
        query.start().awaitTermination(200)
    assert shown(topic, "show", checkpoint)["unfinished_batch"] == 1
    assert rewind(topic, checkpoint, "--topic", f"{topic.name}:0", "--shift-by", "1") == {0: (2, 3)}
    again = Collector(checkpoint)
    again.run(frame)
    assert (again.values, sorted(again.batches)) == (["good"], [2])


@pytest.mark.long  # of sources without names: above
@pytest.mark.skipif(
    not hasattr(__import__("pyspark.sql.streaming").sql.streaming.DataStreamReader, "name"),
    reason="sources have names from Spark 4.2 on",
)
def test_of_sources_with_names_one_is_moved(make_topic: Topics, checkpoint: str, spark: Any) -> None:
    left, right = make_topic(), make_topic()
    left.put(["left"])
    right.put(["right"])
    spark.conf.set(_V2, "2")
    spark.conf.set(_NAMES, "true")
    try:

        def named(topic: Topic, name: str) -> Any:
            given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
            return spark.readStream.name(name).format("pylog").options(**given).load()

        frame = named(left, "first").union(named(right, "second"))
        Collector(checkpoint).run(frame)
        found = shown(left, "show", checkpoint)
        assert {row["source"]: row["topic"] for row in found["offsets"]} == {"first": left.name, "second": right.name}
        assert rewind(left, checkpoint, "--source", "second", "--to-earliest") == {0: (1, 0)}
        again = Collector(checkpoint)
        again.run(frame)
        assert again.values == ["right"]
        unknown = pylog(left, "lag", checkpoint, "--source", "third")
        assert (unknown.returncode, "No source 'third'" in unknown.stderr) == (1, True)
    finally:
        spark.conf.unset(_V2)
        spark.conf.unset(_NAMES)


@pytest.mark.long  # where a query is sent: above
def test_a_copy_is_the_checkpoint_of_another_query(make_topic: Topics, checkpoint: str) -> None:
    source, target = make_topic(), make_topic()
    source.put(numbered(3))
    frame = source.read_stream().select("value")
    first = target.save_stream(frame, checkpoint)
    source.put(["new"])
    copy = f"{checkpoint}-copy"
    made = shown(source, "fork", checkpoint, copy, "--stopped")
    assert (made["forked_from"], made["query_id"] != first.id) == (first.id, True)
    second = target.save_stream(frame, copy)
    assert second.id == made["query_id"]
    target.save_stream(frame, checkpoint)
    # Each of the two has written it.
    assert target.values() == [*numbered(3), "new", "new"]
    full = pylog(source, "fork", checkpoint, copy, "--stopped")
    assert (full.returncode, "is not empty" in full.stderr) == (1, True)


@pytest.mark.skipif(not spark_home.connector(), reason="the jars of Spark's Kafka connector cannot be had")
def test_a_query_of_sparks_kafka_connector_is_shown_and_moved(make_topic: Topics, checkpoint: str, spark: Any) -> None:
    topic = make_topic()
    topic.put(numbered(4))
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**given).load()
    Collector(checkpoint).run(frame)
    assert [row["end"] for row in shown(topic, "show", checkpoint)["offsets"]] == [4]
    assert rewind(topic, checkpoint, "--shift-by", "-2") == {0: (4, 2)}
    again = Collector(checkpoint)
    again.run(frame)
    assert (again.values, sorted(again.batches)) == (numbered(2, 2), [1])


def test_what_cannot_be_done_is_refused_in_one_sentence(make_topic: Topics, checkpoint: str, tmp_path: Path) -> None:
    topic = make_topic()
    topic.put(numbered(2))
    Collector(checkpoint).run(topic.read_stream())
    for words, code, sentence in (
        (["show", str(tmp_path)], 1, "is not the checkpoint of a streaming query"),
        (["rewind", checkpoint, "--to-batch", "7"], 1, "has no batch 7; it has 0 to 0"),
        (["rewind", checkpoint, "--to-batch", "0", "--to-latest"], 2, "--to-batch stands alone"),
        (["rewind", checkpoint], 2, "Say which offsets to set"),
        (["rewind", checkpoint, "--topic", f"{topic.name}:5", "--to-latest"], 1, "has no partition 5"),
        (["show", "unknown://somewhere"], 1, "unknown://somewhere cannot be opened"),
    ):
        done = pylog(topic, *words)
        assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
        assert "Traceback" not in done.stderr
