"""A directory that a broker uses: what was planned is read while records come, are compacted and are removed, or is an error that says what is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from pylog_spark._native import Client, LogDirectory
from pylog_spark.errors import PylogError
from pylog_spark.testing import LocalBroker
from tests.directories.support import reader
from tests.harness.runs import rounds
from tests.harness.waiting import until
from tests.spark.support import Topic

_names = (f"live-{number}" for number in count())
Topics = Callable[..., Topic]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """A broker of this file's own, that cleans often."""
    often = {
        "log_retention_check_interval_ms": "20",
        "log_cleaner_backoff_ms": "20",
        "log_segment_delete_delay_ms": "20",
    }
    with LocalBroker(tmp_path_factory.mktemp("live"), **often) as running:
        yield running


@pytest.fixture
def new_topic_of(broker: LocalBroker) -> Iterator[Topics]:
    """Makes topics of that broker, by settings with underscores."""
    client = Client({"bootstrap.servers": broker.bootstrap_servers})

    def make(**configs: str) -> Topic:
        topic = Topic(None, broker.bootstrap_servers, client, next(_names), 1)
        topic.create(**configs)
        return topic

    yield make
    client.close()


def values(made: object, task: object) -> list[bytes]:
    """What a task gives."""
    return [value for batch in made.read(task) for value in batch.column("value").to_pylist()]  # type: ignore[attr-defined]


def test_records_that_came_after_the_plan_are_not_read(broker: LocalBroker, new_topic_of: Topics) -> None:
    topic = new_topic_of()
    topic.put([b"%d" % number for number in range(10)])
    made = reader(Path(broker.data_dir), topic.name)
    (task,) = made.partitions()
    topic.put([b"later"])
    assert values(made, task) == [b"%d" % number for number in range(10)]


def test_records_that_were_removed_since_the_plan_are_data_loss(broker: LocalBroker, new_topic_of: Topics) -> None:
    topic = new_topic_of(segment_bytes="1048576", retention_ms="-1")
    for number in range(8):
        topic.put([b"%d" % number + bytes(600_000)])
    path = Path(broker.data_dir)
    strict, lenient = reader(path, topic.name), reader(path, topic.name, failOnDataLoss="false")
    (task,) = strict.partitions()
    topic.client.delete_records([(topic.name, 0, 6)])
    until(lambda: len(list(path.glob(f"{topic.name}-0/*.log"))) <= 2, "the first files are gone")
    with pytest.raises(PylogError, match="holds nothing before offset") as refused:
        values(strict, task)
    assert refused.value.condition == "PYLOG_DATA_LOSS"
    assert [value[:1] for value in values(lenient, task)] == [b"6", b"7"]


def test_a_topic_that_was_made_anew_since_the_plan_is_another_topic(broker: LocalBroker, new_topic_of: Topics) -> None:
    topic = new_topic_of()
    topic.put([b"old"])
    made = reader(Path(broker.data_dir), topic.name)
    (task,) = made.partitions()
    topic.recreate()
    topic.put([b"new"])
    with pytest.raises(PylogError) as refused:
        values(made, task)
    assert refused.value.condition == "PYLOG_TOPIC_RECREATED"
    topic.client.delete_topics([topic.name])
    until(lambda: not (Path(broker.data_dir) / f"{topic.name}-0").exists(), "its folder is gone")
    with pytest.raises(PylogError) as refused:
        values(made, task)
    assert refused.value.condition == "PYLOG_TOPIC_DELETED"


def test_files_that_compaction_replaced_since_the_plan_are_found(broker: LocalBroker, new_topic_of: Topics) -> None:
    often = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "50"}
    topic = new_topic_of(**often)
    keys = pa.array([b"%d" % (number % 10) for number in range(1_000)])
    topic.put([b"%d" % number for number in range(1_000)], key=keys)
    path = Path(broker.data_dir)
    made = reader(path, topic.name)
    (task,) = made.partitions()

    def is_compacted() -> bool:
        topic.put([b"last"], key=pa.array([b"last"]))
        return int(LogDirectory(str(path)).verify(topic.name, 0)["records"]) < 100  # type: ignore[call-overload]

    until(is_compacted, "the log is compacted")
    left = values(made, task)
    assert 0 < len(left) <= 10
    assert set(left) <= {b"%d" % number for number in range(990, 1_000)}


def test_many_reads_beside_appends_and_retention_give_no_wrong_row(broker: LocalBroker, new_topic_of: Topics) -> None:
    """Each value says its offset; what is read follows without a gap, or is refused by name."""
    topic = new_topic_of(segment_bytes="1048576", retention_bytes="3000000")
    path, over = Path(broker.data_dir), threading.Event()

    def append() -> None:
        for start in count(0, 20):
            if over.is_set():
                return
            topic.put([b"%d:" % number + bytes(20_000) for number in range(start, start + 20)])

    def holds(offset: int) -> bool:
        return LogDirectory(str(path)).list_offsets([(topic.name, 0, -2)])[0][2] <= offset

    def read() -> bool:
        """Whether all that was planned was there; what was gone is refused."""
        made = reader(path, topic.name)
        whole = True
        for task in made.partitions():
            ((planned, _),) = task.ranges
            try:
                found = values(made, task)
            except PylogError as error:
                if error.condition != "PYLOG_DATA_LOSS":
                    raise
                whole = False
                continue
            assert [int(value.partition(b":")[0]) for value in found] == list(range(planned.start, planned.end))
        return whole

    def read_late() -> None:
        """What is gone before it is read is refused."""
        made = reader(path, topic.name)
        (task,) = made.partitions() or [None]
        if task is not None:
            until(lambda: not holds(task.ranges[0][0].start), "retention removes what was planned")
            with pytest.raises(PylogError, match="holds nothing before offset"):
                values(made, task)

    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(append)
        try:
            wanted = rounds("PYLOG_LIVE_READS", 60, 2_000)
            while wanted > 0 and not appending.done():
                wanted -= read()
                if wanted % 10 == 0:
                    read_late()
        finally:
            over.set()
        appending.result()
    assert wanted == 0
