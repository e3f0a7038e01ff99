"""What the option `path` takes, what it refuses, and which topics of a directory are read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pylog_spark.datasource import PylogDataSource
from pylog_spark.errors import PylogError
from tests.directories.support import Logs, reader, stored
from tests.reading.support import batches, schema


@pytest.fixture(scope="module")
def logs(ours: dict[str, Logs]) -> Logs:
    """Directories that were stopped cleanly."""
    return ours["stopped"]


def topics(**options: Any) -> set[str]:
    """Which topics a read has rows of."""
    made = PylogDataSource({name: str(text) for name, text in options.items()}).reader(schema("topic"))
    return {name for batch in batches(made) for name in batch.column("topic").unique().to_pylist()}


def refusal(options: dict[str, str]) -> PylogError:
    """The error of a batch read with `options`, at ``load()`` or when it is planned."""

    def plan() -> None:
        source = PylogDataSource(options)
        source.schema()
        source.reader(schema("value")).partitions()

    with pytest.raises(PylogError) as refused:
        plan()
    return refused.value


def test_without_a_subscription_all_topics_but_the_brokers_own_are_read(logs: Logs) -> None:
    assert topics(path=logs.path) == {"plain", "stamped", "transactions", "compacted"}


def test_a_part_of_the_topics_can_be_named(logs: Logs) -> None:
    assert topics(path=logs.path, subscribe="plain,stamped") == {"plain", "stamped"}
    assert topics(path=logs.path, subscribePattern="^(plain|comp.*)$") == {"plain", "compacted"}
    assert topics(path=logs.path, assign='{"plain":[1]}') == {"plain"}


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/"])
def test_the_path_may_be_a_url_of_a_local_file(logs: Logs, form: str) -> None:
    assert topics(path=form.format(logs.path), subscribe="plain") == {"plain"}


def test_a_relative_path_begins_where_the_read_is_planned(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs.path.parent)
    made = PylogDataSource({"path": logs.path.name, "subscribe": "plain"}).reader(schema("value"))
    tasks = made.partitions()
    monkeypatch.chdir("/")
    assert sum(batch.num_rows for task in tasks for batch in made.read(task)) == len(
        logs.seen["plain", "read_committed"]
    )


def test_ranges_may_be_split_packed_and_limited(logs: Logs) -> None:
    rows = logs.seen["plain", "read_committed"]
    assert stored(logs.path, "plain", minPartitions=7) == rows
    assert stored(logs.path, "plain", minRecordsPerPartition=100_000, minBytesPerPartition=10**9) == rows
    assert stored(logs.path, "plain", maxBytesPerPartition="200k") == rows
    sizes = [file.stat().st_size for partition in (0, 1) for file in logs.segments("plain", partition)]
    tasks = reader(logs.path, "plain", maxBytesPerPartition="200k").partitions()
    assert len(tasks) >= sum(sizes) / (200 << 10)
    assert len(reader(logs.path, "plain").partitions()) == 2
    assert len(stored(logs.path, "plain", limit=17)) == 17
    wanted = [row for row in rows if row.key == b"key-7"]
    assert stored(logs.path, "plain", filterKey="key-7") == wanted
    assert wanted


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"path": "/nowhere/at/all"}, "/nowhere/at/all is no data directory of a broker: .*all machines that read"),
        ({"path": "/proc/self"}, "it has no folder <topic>-<partition> and no meta.properties"),
        ({"path": "strange://bucket/logs"}, "strange://bucket/logs cannot be opened"),
        ({"path": "file://host/logs"}, "must be a directory that all machines see as a local path"),
        ({"path": " "}, "The option path must not be empty"),
        ({"path": "/tmp", "kafka.bootstrap.servers": "a:1"}, "path and kafka.bootstrap.servers exclude each other"),
        ({"path": "/tmp", "kafka.client.rack": "a"}, "path and kafka.client.rack exclude each other"),
        ({"path": "/tmp", "clientRack": "a"}, "path and clientRack exclude each other"),
        ({"kafka.bootstrap.servers": "a:1", "subscribe": "t", "ignoreCorruptBatches": "true"}, "needs the option path"),
        ({"kafka.bootstrap.servers": "a:1", "subscribe": "t", "maxBytesPerPartition": "1m"}, "needs the option path"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(options: dict[str, str], sentence: str) -> None:
    error = refusal(options)
    assert error.condition == "PYLOG_INVALID_OPTION"
    assert error.sentence.count("\n") == 0
    assert re.search(sentence, error.sentence), error.sentence


def test_the_directory_of_one_partition_is_not_that_of_a_broker(logs: Logs) -> None:
    error = refusal({"path": str(logs.path / "plain-0")})
    assert "it is the directory of one partition; give the one that it lies in" in error.sentence


def test_a_topic_that_is_not_there_is_an_error_that_names_those_that_are(logs: Logs) -> None:
    for options in ({"subscribe": "plane"}, {"assign": '{"plane":[0]}'}):
        error = refusal({"path": str(logs.path), **options})
        assert error.condition == "PYLOG_UNKNOWN_TOPIC"
        assert "no topic 'plane', but compacted, plain, stamped, transactions; correct the name" in error.sentence
    error = refusal({"path": str(logs.path), "assign": '{"plain":[0,9]}'})
    assert f"The directory {logs.path} has no partition plain-9" in error.sentence


def test_a_stream_and_a_write_refuse_a_path(logs: Logs) -> None:
    from pylog_spark.options import STREAM, read_options, write_options

    with pytest.raises(PylogError, match="The option path has no meaning in a stream read, only in a batch read"):
        read_options({"path": str(logs.path)}, STREAM)
    with pytest.raises(PylogError, match="The option path has no meaning in a write, only in a batch read"):
        write_options({"path": str(logs.path), "topic": "t"}, streaming=False)
