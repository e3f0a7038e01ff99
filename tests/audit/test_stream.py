"""The streaming audit names the windows that differ, no others, and takes back what was put right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from pylog_spark.audit import Difference, differences
from pylog_spark.audit.document import AuditRecord
from pylog_spark.client import Admin
from pylog_spark.errors import PylogError
from tests.audit.support import MINUTE, Audited, at
from tests.harness.waiting import until

pytestmark = pytest.mark.long  # in a batch: test_producers.py

#: The first query of a session takes most of a minute on a machine that is busy otherwise.
_DEADLINE_S = 120
Watch = Callable[..., Callable[[], list[Difference]]]


@pytest.fixture
def watch(spark: Any, audited: Audited, checkpoint: str, request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Start the audit as a query; gives a function that asks for what it has named so far."""
    name = f"named_{request.node.name.split('[')[0]}"
    running: list[Any] = []

    def start(**more: Any) -> Callable[[], list[Difference]]:
        given = {"window": "1m", "delay": "1s", "kafka.bootstrap.servers": audited.servers, **more}
        frame = differences(spark, audited.audit, audited.topic, **given)
        writer = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", checkpoint)
        running.append(writer.trigger(processingTime="300 milliseconds").start())

        def named() -> list[Difference]:
            assert running[-1].isActive, str(running[-1].exception())
            return [
                Difference(row.topic, row.start, int(row.end - row.start), row.producers, row.log)
                for row in spark.table(name)
                .selectExpr("*", "unix_millis(window_start) AS start", "unix_millis(window_end) AS end")
                .collect()
            ]

        return named

    yield start
    for query in running:
        query.stop()


def count_on(audited: Audited, window: int) -> Difference:
    """Makes a difference whose naming shows that all that came before it was looked at."""
    audited.double(window)
    return audited.difference(window, 0, 1)


def test_a_lost_record_and_a_doubled_one_are_named_and_no_other_window(audited: Audited, watch: Watch) -> None:
    with audited.producer() as producer:
        audited.fill(producer, range(10))
    audited.lose(3)
    named = watch()
    first = audited.difference(3, 51, 50)
    until(lambda: first in named(), lambda: f"the lost one is named: {named()}", _DEADLINE_S)
    assert named() == [first]
    audited.double(7)
    second = audited.difference(7, 50, 51)
    until(lambda: second in named(), lambda: f"the doubled one is named: {named()}", _DEADLINE_S)
    # Late records of windows that were judged long ago, all of them counted.
    with audited.producer() as producer:
        audited.fill(producer, [0, 1, 20])
    last = count_on(audited, 30)
    until(lambda: last in named(), lambda: f"the last one is named: {named()}", _DEADLINE_S)
    assert named() == [first, second, last]
    # What was said too late puts the window right.
    late = AuditRecord(audited.topic, at(7), MINUTE, 1, "late")
    with audited.producer() as producer:
        producer.publish()
        super(type(producer), producer).produce(audited.audit, late.value, late.key)
    right = audited.difference(7, 51, 51)
    until(lambda: right in named(), lambda: f"it is taken back: {named()}", _DEADLINE_S)
    assert named() == [first, second, last, right]


@pytest.mark.long  # in a batch: test_producers.py
def test_only_windows_since_then_are_compared_and_strange_records_are_named(audited: Audited, watch: Watch) -> None:
    with audited.producer() as producer:
        audited.fill(producer, range(6))
        super(type(producer), producer).produce(audited.audit, b"no audit record")
    audited.double(1)
    audited.double(4)
    named = watch(since=datetime.fromtimestamp(at(2, 1) / 1000, timezone.utc))
    until(lambda: len(named()) == 2, lambda: f"both are named: {named()}", _DEADLINE_S)
    strange, known = sorted(named(), key=lambda each: each.topic == audited.topic)
    assert known == audited.difference(4, 50, 51)
    assert (strange.topic, strange.producers, strange.log) == (audited.audit, 0, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"maxOffsetsPerTrigger": 10}, "does not go with an audit"),
        ({"subscribe": "x"}, "sets the option subscribe itself"),
        ({"window": "soon"}, "The argument window"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(
    spark: Any, audited: Audited, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(PylogError, match=words):
        differences(spark, audited.audit, audited.topic, **{"kafka.bootstrap.servers": audited.servers, **given})


def test_a_compacted_topic_is_refused_at_once(spark: Any, audited: Audited) -> None:
    with Admin(audited.servers) as admin:
        admin.alter_configs("topic", audited.topic, {"cleanup.policy": "compact"})
    with pytest.raises(PylogError, match="compacted"):
        differences(spark, audited.audit, audited.topic, **{"kafka.bootstrap.servers": audited.servers})
