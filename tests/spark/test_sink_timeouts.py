"""Brokers that do not prepare transactions: the narrower promise holds, and losses are reported.

On Apache Kafka, and on pylog with two-phase commit switched off.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.sink import commit
from pylog_spark.sink.identity import STREAM, Write
from pylog_spark.sink.ledger import Ledger
from tests.harness.brokers import BOTH
from tests.harness.kafka import either
from tests.harness.waiting import until
from tests.interop.clients import create_topic
from tests.spark.once import Job, committed_values

pytestmark = pytest.mark.cluster

_NUMBERS = count()
_SOON_MS = "3000"
_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}


@pytest.fixture(scope="module", params=BOTH)
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a running broker."""
    with either(request, _SETTINGS, "spark_kafka", transaction_two_phase_commit_enable="false") as servers:
        yield servers


@pytest.fixture
def make_job(cluster: str) -> Callable[..., Job]:
    """Makes attempts at batches of one query whose transactions time out soon."""
    name = f"timeout-{os.getpid()}-{next(_NUMBERS)}"
    create_topic(cluster, name, 1)
    # The first use of a broker's transactions makes its topics, which takes long.
    warm = Job(cluster, name, Write(STREAM, f"warm.{name}", 0))
    warm.task(0, "warm")
    warm.abort()

    def make(version: int = 0, timeout_ms: str = _SOON_MS) -> Job:
        write = Write(STREAM, f"query.{name}", version)
        return Job(cluster, name, write, settings={"transaction.timeout.ms": timeout_ms})

    return make


def seen(job: Job) -> list[str]:
    return committed_values(job.servers, job.topic)


def wait_for_time_out(job: Job) -> None:
    ids = [outcome.transaction.transactional_id for outcome in job.outcomes if outcome.transaction]
    ledger = Ledger(job.client)
    until(lambda: all(each.state == "CompleteAbort" for each in ledger.describe(ids).values()), "they time out")
    ledger.close()


def decide_and_die(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def died(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(commit, "end", died)
        with pytest.raises(KeyboardInterrupt):
            job.commit()


def test_a_transaction_that_timed_out_before_the_commit_fails_it_as_a_whole(make_job: Callable[..., Job]) -> None:
    job = make_job()
    job.task(0, "early")
    wait_for_time_out(job)
    job.task(1, "late")
    with pytest.raises(PylogError) as caught:
        job.commit()
    assert caught.value.condition == "PYLOG_TRANSACTION_LOST"
    assert "raise kafka.transaction.timeout.ms" in caught.value.sentence
    job.abort()
    assert seen(job) == []
    again = make_job(timeout_ms="60000")
    again.task(0, "early")
    again.task(1, "late")
    again.commit()
    assert seen(again) == ["early", "late"]


def test_a_driver_that_comes_back_within_the_time_out_finishes_what_was_decided(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_job(timeout_ms="60000")
    first.task(0, "a")
    decide_and_die(first, monkeypatch)
    make_job(timeout_ms="60000").commit()
    assert seen(first) == ["a"]


@pytest.mark.long  # a commit that fails as a whole: above
def test_a_driver_that_comes_back_too_late_says_what_is_lost_and_how_to_go_on(
    make_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a busy machine to decide in it.
    first = make_job(timeout_ms="6000")
    first.task(0, "a")
    first.task(1, "b")
    decide_and_die(first, monkeypatch)
    wait_for_time_out(first)
    for _ in range(2):
        again = make_job()
        with pytest.raises(PylogError) as caught:
            again.commit()
        assert caught.value.condition == "PYLOG_TRANSACTION_LOST"
        assert "2 of its 2 transactions" in caught.value.sentence
        assert "delivery set to at-least-once" in caught.value.sentence
    later = make_job(version=1, timeout_ms="60000")
    later.task(0, "c")
    later.commit()
    assert seen(later) == ["c"]
