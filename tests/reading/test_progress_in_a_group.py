"""A stream's progress shown in a consumer group: Kafka's tools see the lag, and the query never suffers for it.
Through Spark: ``tests/spark/test_progress.py``."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

from pylog_spark.client import Admin
from pylog_spark.offsets import TopicPartition
from pylog_spark.offsets.position import Position
from pylog_spark.options import STREAM, read_options
from pylog_spark.source.progress import PAUSE_S, Progress
from tests.harness.ports import nowhere
from tests.peers.kafka import java
from tests.reading.streams import BOTH_WAYS, Checkpoint, Query, read
from tests.spark.support import Topic

pytestmark = [pytest.mark.cluster, BOTH_WAYS]

Topics = Callable[..., Topic]


def progress(topic: Topic, group: str, clock: list[float] | None = None) -> Progress:
    given = {"kafka.bootstrap.servers": topic.servers, "subscribe": topic.name, "kafka.group.id": group}
    return shown_by(given, lambda: clock[0] if clock else 0.0)


def shown_by(given: dict[str, str], monotonic_s: Callable[[], float] = lambda: 0.0) -> Progress:
    options = read_options(given, STREAM)
    return Progress(options.group_id, options.client, monotonic_s)


def position(topic: Topic, offset: int) -> dict[str, Any]:
    return Position({TopicPartition(topic.name, 0): offset}).to_document()


def test_a_group_shows_what_a_stream_has_finished(make_topic: Topics) -> None:
    topic = make_topic(partitions=2)
    topic.put(["v"] * 6, 0)
    topic.put(["v"] * 3, 1)
    group = f"{topic.name}-progress"
    with Admin(topic.servers) as admin:
        # The first group of a new cluster may have to wait for its coordinator, for which a query would not wait.
        admin.alter_group_offsets(group, {(topic.name, 0): 0})
        run = read(topic, maxOffsetsPerTrigger=3, **{"kafka.group.id": group})
        assert run.sizes == [3, 3, 3]
        assert admin.group_offsets(group) == {(topic.name, 0): 6, (topic.name, 1): 3}


def test_the_last_batch_before_a_stop_is_shown_when_the_query_starts_again_and_not_before(make_topic: Topics) -> None:
    topic = make_topic()
    group, known = f"{topic.name}-stopped", Checkpoint()
    options = {"kafka.group.id": group}
    with Admin(topic.servers) as admin:
        admin.alter_group_offsets(group, {(topic.name, 0): 0})
        query = Query(topic, known, **options)
        for shown in (0, 3):
            topic.put(["v"] * 3)
            assert query.trigger()
            assert admin.group_offsets(group) == {(topic.name, 0): shown}
        query.stop()
        assert admin.group_offsets(group) == {(topic.name, 0): 3}, (
            "whether the second was finished is not known to the source"
        )
        again = Query(topic, known, **options)
        assert not again.trigger()
        assert admin.group_offsets(group) == {(topic.name, 0): 6}
        again.stop()


def test_a_batch_that_was_not_finished_is_never_shown(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["v"] * 3)
    group, known = f"{topic.name}-unfinished", Checkpoint()
    options = {"kafka.group.id": group}
    with Admin(topic.servers) as admin:
        admin.alter_group_offsets(group, {(topic.name, 0): 0})
        query = Query(topic, known, **options)
        assert query.trigger()
        query.stop()
        known.forget_commit()  # the driver died before the end of the batch
        again = Query(topic, known, **options)
        assert again.trigger(), "it runs again"
        again.stop()
        assert admin.group_offsets(group) == {(topic.name, 0): 0}


def test_nothing_is_committed_without_a_group(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["v"] * 3)
    with Admin(topic.servers) as admin:
        before = {each.group_id for each in admin.groups()}
        assert len(read(topic, maxOffsetsPerTrigger=1, groupIdPrefix="mine").sizes) == 3
        assert {each.group_id for each in admin.groups()} <= before


def test_pylogs_tool_shows_the_lag(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["v"] * 10)
    shown = progress(topic, f"{topic.name}-cli")
    shown.show(position(topic, 4))
    shown.close()
    command = [
        sys.executable,
        "-m",
        "pylog_spark",
        "group",
        "describe",
        f"{topic.name}-cli",
        "--bootstrap-server",
        topic.servers,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(rf"{topic.name}\s+0\s+4\s+10\s+6\b", done.stdout), done.stdout + done.stderr


@pytest.mark.peers
def test_kafkas_own_tool_shows_the_lag(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["v"] * 10)
    shown = progress(topic, f"{topic.name}-tool")
    shown.show(position(topic, 4))
    shown.close()
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    text = java(tool, "--bootstrap-server", topic.servers, "--describe", "--group", f"{topic.name}-tool")
    (line,) = [line.split() for line in text.splitlines() if topic.name in line and line.split()[2:3] == ["0"]]
    assert line[1:6] == [topic.name, "0", "4", "10", "6"]


def test_a_group_that_refuses_is_a_warning_once_and_not_asked_again_for_a_while(
    make_topic: Topics, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic()
    topic.put(["v"])
    group = f"{topic.name}-busy"
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic.name])
    assert consumer.poll(60) is not None  # a member of the group, which alone may commit now
    clock = [0.0]
    shown = progress(topic, group, clock)
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        for _ in range(3):
            shown.show(position(topic, 1))
        clock[0] = PAUSE_S + 1
        shown.show(position(topic, 1))
    assert len(caplog.records) == 1
    assert f"not shown in the group '{group}'" in caplog.text
    consumer.close()
    clock[0] = 3 * PAUSE_S
    shown.show(position(topic, 1))
    shown.close()
    with Admin(topic.servers) as admin:
        assert admin.group_offsets(group) == {(topic.name, 0): 1}


def test_a_broker_that_is_away_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    given = {"kafka.bootstrap.servers": nowhere(), "subscribe": "t", "kafka.group.id": "g"}
    shown = shown_by(given)
    with caplog.at_level(logging.WARNING, "pylog_spark"):
        shown.show(Position({TopicPartition("t", 0): 1}).to_document())
    assert "PYLOG_UNREACHABLE" in caplog.text
