"""What the data source makes of a broker that lies: readers and writers as Spark runs them, without Spark. Of the client alone, below a
scripted broker in Rust: ``broker_native/client/src/tests/faults.rs``."""

import time
from collections.abc import Iterator

import pytest

from pylog_spark._native import Client
from pylog_spark.errors import PylogError
from tests.hostile.lying import (
    FETCH,
    HANG_UP,
    NOT_LEADER_OR_FOLLOWER,
    PRODUCE,
    SILENCE,
    Asked,
    Drip,
    LyingBroker,
    Reply,
    emptied,
    lying_broker,
    refused,
    truth,
)
from tests.reading.streams import Checkpoint, read
from tests.reading.support import values
from tests.reading.writing import save, texts
from tests.spark.support import Topic

ROWS = [f"{number:04}" for number in range(1_000)]
#: What a reader waits for records that it was promised, and how much longer a busy machine may make it.
TIMEOUT_MS, SLACK_S = 2_000, 20
BRIEF = {"kafkaConsumer.pollTimeoutMs": TIMEOUT_MS, "kafka.request.timeout.ms": 1_000}


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LyingBroker]:
    with lying_broker(tmp_path_factory.mktemp("lying")) as lying:
        yield lying


@pytest.fixture
def topic(lying: LyingBroker, new_topic: str) -> Iterator[Topic]:
    """A topic with `ROWS`; the broker replies truthfully before and after the test."""
    topic = Topic(None, lying.servers, Client({"bootstrap.servers": lying.servers}), new_topic, 1)
    topic.create()
    topic.put(ROWS)
    yield topic
    lying.script = truth


def failed(topic: Topic, **options: object) -> tuple[PylogError, float]:
    """The error with which a batch read fails, and the seconds that it took."""
    begun = time.monotonic()
    with pytest.raises(PylogError) as caught:
        values(topic, **options)
    return caught.value, time.monotonic() - begun


def test_empty_answers_below_the_high_watermark_fail_by_name_and_lose_nothing(topic: Topic, lying: LyingBroker) -> None:
    def empty(asked: Asked, answer: bytes) -> Reply:
        return emptied(asked, answer) if asked.api == FETCH else answer

    known = Checkpoint()
    lying.script = empty
    error, took_s = failed(topic, **BRIEF)
    assert error.condition == "PYLOG_UNREACHABLE"
    assert f"{topic.name}-0" in error.sentence
    assert took_s < TIMEOUT_MS / 1_000 + SLACK_S
    with pytest.raises(PylogError, match="PYLOG_UNREACHABLE"):
        read(topic, known, **BRIEF)
    lying.script = truth
    assert values(topic) == ROWS
    assert read(topic, known).values == ROWS, "the query goes on from its checkpoint"


def test_some_empty_answers_and_some_errors_are_asked_again(topic: Topic, lying: LyingBroker) -> None:
    first = lying.counts[FETCH]

    def briefly(asked: Asked, answer: bytes) -> Reply:
        if asked.api != FETCH or asked.number >= first + 6:
            return answer
        return refused(asked, answer, NOT_LEADER_OR_FOLLOWER) if asked.number % 2 else emptied(asked, answer)

    lying.script = briefly
    assert values(topic) == ROWS
    assert lying.counts[FETCH] > first + 6


def test_an_answer_that_drips_fails_by_the_deadline(topic: Topic, lying: LyingBroker) -> None:
    def drip(asked: Asked, answer: bytes) -> Reply:
        return Drip(answer, 0.05) if asked.api == FETCH else answer

    lying.script = drip
    error, took_s = failed(topic, **BRIEF)
    assert error.condition == "PYLOG_UNREACHABLE"
    assert took_s < TIMEOUT_MS / 1_000 + SLACK_S, "all of it would take ten minutes"
    lying.script = truth
    assert values(topic) == ROWS


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("manner", [pytest.param(SILENCE, id="silence"), pytest.param(HANG_UP, id="hang up")])
def test_an_answer_to_a_write_that_never_comes_leads_to_one_copy_of_each_record(
    topic: Topic, lying: LyingBroker, manner: Reply, delivery: str
) -> None:
    first = lying.counts[PRODUCE]

    def keep(asked: Asked, answer: bytes) -> Reply:
        return manner if asked.api == PRODUCE and asked.number < first + 2 else answer

    lying.script = keep
    written = [f"new {number}" for number in range(500)]
    save(topic, texts(*written), **{"kafka.request.timeout.ms": 1_000, "kafka.batch.size": 2_000, "delivery": delivery})
    assert lying.counts[PRODUCE] > first + 2
    lying.script = truth
    assert values(topic) == [*ROWS, *written]
