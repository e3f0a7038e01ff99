"""Batch drivers that are killed in the middle of a write, or only slow: what they have left undecided ends by itself, by the next
driver that writes or whose reader is held back, and what they have decided is there.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pylog_spark.client.admin import Admin
from pylog_spark.sink import stream
from pylog_spark.sink.abandoned import end_abandoned
from pylog_spark.sink.identity import STREAM, Write
from pylog_spark.sink.task import WritePlan, Written
from tests.crash.paused_driver import DECIDED, UNDECIDED, PausedDriver, Plan
from tests.crash.sink_bench import open_transactions
from tests.harness.brokers import Brokers
from tests.harness.ports import nowhere
from tests.harness.runs import mostly_long
from tests.harness.waiting import until
from tests.reading.streams import Query
from tests.reading.support import values
from tests.reading.writing import save, texts
from tests.spark.once import Job, committed_values
from tests.spark.support import Topic, topic_maker

pytestmark = pytest.mark.cluster

#: `abandonedAfter` of the writes here: long enough for a test to see that drivers wait for it.
AFTER_MS = 1_000
NAMED = {"txnAppId": "nightly", "txnVersion": "7"}
KILLED = ["killed-a", "killed-b"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    brokers = Brokers(tmp_path_factory.mktemp("brokers"))
    brokers.start()
    yield brokers.bootstrap_servers
    brokers.close()


@pytest.fixture
def topic(servers: str) -> Topic:
    new_topic = topic_maker(None, servers, f"topic-{uuid.uuid4()}")()
    new_topic.put(["before"])
    return new_topic


@pytest.fixture
def make_driver(topic: Topic) -> Iterator[Callable[..., PausedDriver]]:
    """Makes drivers of a write into the topic, stopped before it is decided, or after."""
    made: list[PausedDriver] = []

    def make(stop: str = UNDECIDED, **options: str) -> PausedDriver:
        plan = Plan(topic.servers, topic.name, KILLED, stop, {"abandonedAfter": f"{AFTER_MS}ms", **options})
        made.append(PausedDriver(plan))
        return made[-1]

    yield make
    for driver in made:
        driver.kill()


def grown_old(topic: Topic) -> None:
    """Wait until all open transactions are older than their writes may be, by the brokers' clocks."""
    names = open_transactions(topic.servers)
    assert names
    with Admin(topic.servers) as admin:
        until(lambda: len(admin.transactions(["Ongoing"], duration_ms=AFTER_MS)) == len(names), "they are old")


@pytest.mark.parametrize("options", mostly_long([{}, NAMED], {}), ids=["unnamed", "named"])
def test_what_a_killed_driver_left_undecided_is_ended_by_the_next_batch_that_is_written_anywhere(
    topic: Topic, make_driver: Callable[..., PausedDriver], options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    make_driver(**options).kill()
    topic.put(["later"])
    other = topic_maker(None, topic.servers, f"other-{uuid.uuid4()}")()
    assert committed_values(topic.servers, topic.name, waiting=True) == ["before"]
    grown_old(topic)
    save(other, texts("of another job"))
    assert committed_values(topic.servers, topic.name) == ["before", "later"]
    assert open_transactions(topic.servers) == []
    (warning,) = [record.getMessage() for record in caplog.records if "was abandoned" in record.getMessage()]
    for part in (f"2 of its transactions, which wrote to {topic.name}", "aborted", "pylog sink list"):
        assert part in warning


def test_the_next_reader_ends_what_a_killed_driver_left_undecided_and_sees_all_that_came_later(
    topic: Topic, make_driver: Callable[..., PausedDriver]
) -> None:
    make_driver().kill()
    topic.put(["later"])
    grown_old(topic)
    assert values(topic) == ["before", "later"]
    assert open_transactions(topic.servers) == []


@pytest.mark.long  # by a reader of a batch
def test_what_a_killed_driver_left_undecided_is_ended_by_a_streaming_reader(
    topic: Topic, make_driver: Callable[..., PausedDriver]
) -> None:
    make_driver().kill()
    topic.put(["later"])
    grown_old(topic)
    query = Query(topic, columns="value").available_now()
    assert [row.value for rows in query.batches.values() for row in rows] == [b"before", b"later"]


@pytest.mark.long  # by a batch: above
def test_what_a_killed_driver_left_undecided_is_ended_by_a_stream_that_writes(
    topic: Topic, make_driver: Callable[..., PausedDriver]
) -> None:
    make_driver().kill()
    grown_old(topic)
    job = Job(topic.servers, topic.name, Write(STREAM, str(uuid.uuid4()), 0))
    job.task(0, "of a stream")
    writer: Any = stream._Outcome(WritePlan(job.client, topic.name, {"value": "value"}))
    writer.commit([Written(outcome=outcome) for outcome in job.outcomes], 0)
    assert committed_values(topic.servers, topic.name) == ["before", "of a stream"]


def test_nothing_is_ended_before_its_time(topic: Topic, make_driver: Callable[..., PausedDriver]) -> None:
    driver = make_driver(abandonedAfter="1h")
    grown_old(topic)
    topic.put(["later"])
    save(topic, texts("of another job"))
    assert values(topic) == ["before"]
    assert driver.go_on() == "written"
    assert committed_values(topic.servers, topic.name) == ["before", *KILLED, "later", "of another job"]


@pytest.mark.parametrize("options", mostly_long([{}, NAMED], {}), ids=["unnamed", "named"])
def test_what_a_killed_driver_had_decided_is_committed_and_never_aborted(
    topic: Topic, make_driver: Callable[..., PausedDriver], options: dict[str, str]
) -> None:
    make_driver(DECIDED, **options).kill()
    topic.put(["later"])
    grown_old(topic)
    assert sorted(values(topic)) == ["before", *KILLED, "later"]
    if options:
        save(topic, *map(texts, KILLED), **options)
    assert committed_values(topic.servers, topic.name) == ["before", *KILLED, "later"]


@pytest.mark.parametrize("options", mostly_long([{}, NAMED], {}), ids=["unnamed", "named"])
def test_a_driver_that_was_only_slow_fails_with_what_to_do_and_its_rows_are_there_once_when_it_runs_again(
    topic: Topic, make_driver: Callable[..., PausedDriver], options: dict[str, str]
) -> None:
    slow = make_driver(**options)
    grown_old(topic)
    assert values(topic) == ["before"]
    answer = slow.go_on()
    assert answer.startswith("[PYLOG_SINK_FENCED] ")
    assert "open for longer than its option abandonedAfter says" in answer
    assert "larger abandonedAfter" in answer
    assert committed_values(topic.servers, topic.name) == ["before"]
    assert make_driver(**options).go_on() == "written"
    assert committed_values(topic.servers, topic.name) == ["before", *KILLED]


@pytest.mark.long  # one that was slow before: below
def test_a_driver_that_was_slow_after_its_decision_has_written_once_though_another_has_finished_it(
    topic: Topic, make_driver: Callable[..., PausedDriver]
) -> None:
    slow = make_driver(DECIDED)
    grown_old(topic)
    assert sorted(values(topic)) == ["before", *KILLED]
    assert slow.go_on() == "written"
    assert committed_values(topic.servers, topic.name) == ["before", *KILLED]


def test_looking_for_abandoned_writes_never_fails_the_callers_own_work(caplog: pytest.LogCaptureFixture) -> None:
    client = {"bootstrap.servers": nowhere(), "default.api.timeout.ms": "500"}
    with caplog.at_level(logging.WARNING):
        assert end_abandoned(client) == 0
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("Cannot find out whether a write was abandoned")
