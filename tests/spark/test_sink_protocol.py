"""The exactly-once protocol step by step, without Spark: tasks and drivers that die, come twice, or come too late.

On pylog and on Apache Kafka; judged by librdkafka as a reader of committed data. It takes about a minute: transactions whose driver
is gone are waited for until they time out.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from pylog_spark._native import Client
from pylog_spark.errors import PylogError
from pylog_spark.sink import commit
from pylog_spark.sink import ledger as ledger_room
from pylog_spark.sink.decision import PARTITIONS, TOPIC
from pylog_spark.sink.identity import STREAM, Write, batch_write
from pylog_spark.sink.ledger import Driver, Ledger
from pylog_spark.sink.protocol import HELP_AFTER_MS
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.waiting import until
from tests.interop.clients import create_topic
from tests.spark.once import Job, committed_values, open_ends, stored_keys

pytestmark = pytest.mark.cluster

_NUMBERS = count()
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "4",
}


class Crash(Exception):
    """The process dies here."""


@pytest.fixture(scope="module", params=BOTH)
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a running broker."""
    with either(request, SETTINGS, "spark_kafka", transaction_two_phase_commit_enable="true") as servers:
        yield servers


@pytest.fixture
def make_job(cluster: str) -> Callable[..., Job]:
    """Makes attempts at writes: ``make_job(version=3)`` of one query into one topic of two partitions; both are the test's own."""
    name = f"once-{os.getpid()}-{next(_NUMBERS)}"
    create_topic(cluster, name, 2)

    def make(version: int = 0, write: Write | None = None, **settings: str) -> Job:
        return Job(cluster, name, write or Write(STREAM, f"query.{name}", version), settings=settings)

    return make


def seen(job: Job, *, waiting: bool = False) -> list[str]:
    return committed_values(job.servers, job.topic, waiting=waiting)


def dies(monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool, place: Any = commit) -> None:
    """Let the process die before or after a step, once."""
    real = getattr(place, step)

    def dying(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(place, step, real)
        if after:
            real(*arguments, **named)
        raise Crash(step)

    monkeypatch.setattr(place, step, dying)


def test_rows_are_seen_when_the_commit_returns_and_not_before(make_job: Callable[..., Job]) -> None:
    job = make_job()
    job.task(0, "a", "b")
    job.task(1, "c")
    assert seen(job, waiting=True) == []
    job.commit()
    assert seen(job) == ["a", "b", "c"]
    assert job.open_transactions() == []


def test_brokers_that_offer_it_keep_a_transaction_until_it_is_decided(
    make_job: Callable[..., Job], request: pytest.FixtureRequest
) -> None:
    transaction = make_job().task(0, "a").transaction
    assert transaction is not None
    assert transaction.prepared == ("pylog" in request.node.callspec.id)


def test_a_commit_that_runs_twice_commits_once(make_job: Callable[..., Job]) -> None:
    job = make_job()
    job.task(0, "a")
    job.commit()
    decision = job.decision()
    job.commit()
    assert seen(job) == ["a"]
    assert job.decision() == decision


@pytest.mark.parametrize(
    ("step", "after"),
    [
        ("fence", False),
        ("read_decision", True),
        ("decide", False),
        ("decide", True),
        ("end", True),
        ("clean_up", True),
    ],
)
def test_a_driver_that_dies_at_a_step_is_replaced_by_one_that_runs_the_batch_again(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    first = make_job(version=7)
    first.task(0, "a", "b")
    first.task(1, "c")
    dies(monkeypatch, step, after=after)
    with pytest.raises(Crash):
        first.commit()
    again = make_job(version=7)
    again.task(1, "c")
    again.task(0, "a", "b")
    again.commit()
    assert seen(again) == ["a", "b", "c"]
    assert again.open_transactions() == []
    later = make_job(version=8)
    later.task(0, "d")
    later.commit()
    assert seen(later) == ["a", "b", "c", "d"]


def test_a_decision_that_was_written_and_not_committed_is_none(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_job()
    first.task(0, "a")

    def written_only(self: Driver, decision: Any) -> None:
        self._writer.write(self._record(ledger_room.encode(decision)))
        self._writer.flush()
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Driver, "store", written_only)
        # A reader of decisions waits for the end of this transaction.
        patched.setattr(ledger_room, "DRIVER_TIMEOUT_MS", 4_000)
        with pytest.raises(Crash):
            first.commit()
    again = make_job()
    again.task(0, "A")
    again.commit()
    assert seen(again) == ["A"]


def test_a_driver_that_dies_between_two_ends_leaves_the_rest_to_the_next(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_job()
    for partition in range(4):
        first.task(partition, f"v{partition}")

    def half(ledger: Ledger, decision: Any) -> None:
        ledger.end([transaction.identity for transaction in decision.transactions[:2]], commit=True)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(commit, "end", half)
        with pytest.raises(Crash):
            first.commit()
    assert len(first.open_transactions()) == 2
    again = make_job()
    again.outcomes = [replace(outcome, transaction=None, skipped=True) for outcome in first.outcomes]
    again.commit()
    assert seen(again) == ["v0", "v1", "v2", "v3"]


def test_of_two_drivers_of_one_query_the_newer_commits_and_the_older_fails(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = make_job(version=2), make_job(version=2)
    old.task(0, "row")
    new.task(0, "row")
    real = commit.decide

    def overtaken(driver: Driver, decision: Any) -> None:
        monkeypatch.setattr(commit, "decide", real)
        new.commit()
        real(driver, decision)

    monkeypatch.setattr(commit, "decide", overtaken)
    with pytest.raises(PylogError) as caught:
        old.commit()
    assert caught.value.condition == "PYLOG_SINK_FENCED"
    assert old.write.key in caught.value.sentence
    old.abort()
    assert seen(new) == ["row"]
    assert new.open_transactions() == []
    decision = new.decision()
    assert decision is not None
    assert {transaction.transactional_id for transaction in decision.transactions} == {
        outcome.transaction.transactional_id for outcome in new.outcomes if outcome.transaction
    }


def test_a_fenced_driver_that_gives_up_leaves_the_newer_ones_transactions_alone(make_job: Callable[..., Job]) -> None:
    old, new = make_job(), make_job()
    old.task(0, "old")
    new.task(0, "new")
    old.abort()
    assert len(new.open_transactions()) == 1
    new.commit()
    assert seen(new) == ["new"]


def test_giving_up_aborts_what_was_written_and_the_next_attempt_starts_anew(make_job: Callable[..., Job]) -> None:
    failed = make_job()
    failed.task(0, "a")
    unreported = failed.task(1, "b")
    failed.outcomes.remove(unreported)
    failed.abort()
    assert failed.open_transactions() == []
    assert seen(failed) == []
    again = make_job()
    again.task(0, "a")
    again.commit()
    assert seen(again) == ["a"]


def test_giving_up_after_a_commit_that_failed_behind_its_decision_changes_nothing(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    job.task(0, "a")
    dies(monkeypatch, "decide", after=True)
    with pytest.raises(Crash):
        job.commit()
    job.abort()
    make_job().commit()
    assert seen(job) == ["a"]


def test_giving_up_does_not_wait_for_a_decision_that_was_being_stored(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than anything else may take.
    monkeypatch.setattr(ledger_room, "DRIVER_TIMEOUT_MS", 120_000)
    job = make_job()
    job.task(0, "a")
    left_open: list[Driver] = []

    def written_only(self: Driver, decision: Any) -> None:
        self._writer.write(self._record(ledger_room.encode(decision)))
        self._writer.flush()
        left_open.append(self)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(Driver, "store", written_only)
        with pytest.raises(Crash):
            job.commit()
    assert len(left_open) == 1
    started = time.monotonic()
    job.abort()
    assert time.monotonic() - started < 30
    assert job.open_transactions() == []
    assert seen(job) == []


def test_losers_and_the_dead_are_aborted_by_the_commit_and_newer_versions_and_other_queries_are_not(
    make_job: Callable[..., Job],
) -> None:
    winner, loser, old, newer = make_job(version=5), make_job(version=5), make_job(version=4), make_job(version=6)
    other = make_job(write=Write(STREAM, f"{winner.write.key}.5", 1))
    for attempt, value in ((winner, "w"), (loser, "l"), (old, "o"), (newer, "n"), (other, "x")):
        attempt.task(0, value)
    winner.commit()
    assert len(winner.open_transactions()) == 1
    newer.commit()
    other.commit()
    assert seen(winner) == ["n", "w", "x"]


def test_a_task_that_ends_after_the_decision_ends_its_own_transaction(make_job: Callable[..., Job]) -> None:
    winner, late = make_job(), make_job()
    winner.task(0, "a")
    winner.commit()
    outcome = late.task(0, "late")
    assert (outcome.transaction, outcome.skipped) == (None, True)
    assert late.open_transactions() == []
    assert seen(winner) == ["a"]


def test_a_task_whose_input_fails_ends_its_own_transaction(make_job: Callable[..., Job]) -> None:
    import pyarrow as pa

    from pylog_spark.sink.attempt import Attempt

    job = make_job()

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": pa.array([b"a"], pa.binary())})
        raise Crash

    with pytest.raises(Crash):
        Attempt(job.client, job.topic, job.write, 0, job.name).run(rows())
    assert job.open_transactions() == []
    assert seen(job) == []


def test_a_commit_without_rows_stores_nothing_and_one_that_finds_the_version_decided_finishes_it(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = make_job()
    empty.commit()
    assert empty.decision() is None
    first = make_job()
    first.task(0, "a")
    dies(monkeypatch, "decide", after=True)
    with pytest.raises(Crash):
        first.commit()
    empty.commit()
    assert seen(first) == ["a"]


def test_a_version_that_was_left_decided_and_unfinished_is_finished_before_the_next_one(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_job(write=batch_write(("orders-unfinished", 1), None))
    first.task(0, "one")
    dies(monkeypatch, "decide", after=True)
    with pytest.raises(Crash):
        first.commit()
    second = make_job(write=batch_write(("orders-unfinished", 2), None))
    second.task(0, "two")
    second.commit()
    assert seen(second) == ["one", "two"]


def test_a_batch_without_a_name_leaves_no_decision_and_one_with_a_name_leaves_its_version(
    make_job: Callable[..., Job],
) -> None:
    before = set(stored_keys(make_job().servers)) if has_topic(make_job().servers) else set()
    nameless, named = make_job(write=batch_write(None, None)), make_job(write=batch_write(("orders-left", 3), None))
    nameless.task(0, "a")
    named.task(0, "b")
    nameless.commit()
    named.commit()
    stored = stored_keys(nameless.servers)
    assert set(stored) - before == {"/orders-left"}
    assert (stored["/orders-left"]["version"], stored["/orders-left"]["transactions"]) == (3, [])
    named.commit()
    assert seen(named) == ["a", "b"]


def test_late_tasks_of_a_nameless_batch_that_was_given_up_end_their_transactions(make_job: Callable[..., Job]) -> None:
    job = make_job(write=batch_write(None, None))
    job.task(0, "a")
    job.abort()
    assert job.task(1, "late").transaction is None
    assert job.open_transactions() == []
    assert seen(job) == []


@pytest.mark.parametrize("named", [True, False])
def test_a_batch_whose_driver_died_behind_its_decision_is_finished_by_a_neighbour(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    place_of = Ledger({"bootstrap.servers": make_job().servers})._place
    dead = make_job(write=batch_write(("orders-dead", 1) if named else None, None))
    dead.task(0, "decided")
    dies(monkeypatch, "decide", after=True)
    with pytest.raises(Crash):
        dead.commit()
    # Brokers are shared with other tests, which may have had the same partition.
    others = (f"helper-of-{dead.topic}-{number}" for number in count())
    neighbour = next(key for key in others if place_of(f"/{key}") == place_of(dead.write.key))

    def helped(version: int) -> list[str]:
        helper = make_job(write=batch_write((neighbour, version), None))
        helper.task(0, f"h{version}")
        helper.commit()
        return seen(helper, waiting=True)

    assert "decided" not in helped(1)
    later = commit.now_ms() + HELP_AFTER_MS + 60_000
    monkeypatch.setattr(commit, "now_ms", lambda: later)
    assert helped(2) == ["decided", "h1", "h2"]
    assert open_ends(dead.servers, dead.topic) == {}
    left = stored_keys(dead.servers).get(dead.write.key)
    assert left is None if not named else left["transactions"] == []


def has_topic(servers: str) -> bool:
    client = Client({"bootstrap.servers": servers})
    (found,) = client.describe_topics([TOPIC])
    client.close()
    return found["error"] is None


def test_the_topic_of_decisions_is_made_once_by_several_at_once_and_is_compacted(make_job: Callable[..., Job]) -> None:
    job = make_job()
    client = Client(job.client)
    if has_topic(job.servers):
        client.delete_topics([TOPIC])
        until(lambda: not has_topic(job.servers), "the topic is gone")
    from concurrent.futures import ThreadPoolExecutor

    def ensure(_: int) -> None:
        ledger = Ledger(job.client)
        ledger.ensure()
        ledger.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ensure, range(8)))
    (described,) = client.describe_topics([TOPIC])
    (configs,) = client.describe_configs("topic", [TOPIC])
    assert len(described["partitions"]) == PARTITIONS
    assert {entry["name"]: entry["value"] for entry in configs["configs"]}["cleanup.policy"] == "compact"
    job.task(0, "a")
    job.commit()
    assert seen(job) == ["a"]
