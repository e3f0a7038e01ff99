"""The native writer's transactions, and ending them from another client, at pylog's broker and at Apache Kafka."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from pylog_spark._native import Client, NativeError, RecordWriter
from pylog_spark.client.admin import LATEST, Admin
from tests.client.support import read, values_batch

pytestmark = pytest.mark.cluster

TIMEOUT_MS = 30_000

Config = Mapping[str, str]


@pytest.fixture
def transactional_id() -> str:
    return f"writer-{uuid.uuid4()}"


@contextmanager
def writing(config: Config, topic: str | None, transactional_id: str) -> Iterator[RecordWriter]:
    writer = RecordWriter(config, topic, transactional_id=transactional_id)
    try:
        yield writer
    finally:
        writer.close()


def prepared(config: Config, topic: str, transactional_id: str, *values: bytes) -> dict[str, Any]:
    """Write a transaction and leave it open; what ends it."""
    with writing(config, topic, transactional_id) as writer:
        writer.write(values_batch(values))
        writer.flush()
        transaction = writer.prepare()
    assert transaction is not None
    return transaction


def ending(transaction: Mapping[str, Any]) -> tuple[str, int, int]:
    return transaction["transactional_id"], transaction["producer_id"], transaction["producer_epoch"]


def end(config: Config, commit: bool, *transactions: Mapping[str, Any]) -> list[dict[str, Any]]:
    return Client(config).end_transactions([ending(transaction) for transaction in transactions], commit, TIMEOUT_MS)


def committed(config: Config, topic: str, partition: int = 0) -> list[bytes]:
    """The values that a reader of committed data sees now."""
    ((_, _, stable, _),) = Client(config).list_offsets([(topic, partition, LATEST)], "read_committed")
    rows = read({**config, "isolation.level": "read_committed"}, topic, partition, 0, stable, ["value"])
    values: list[bytes] = rows["value"].to_pylist()
    return values


def test_what_a_writer_commits_is_seen_when_it_returns_and_not_before(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    with writing(config, topic, transactional_id) as writer:
        writer.write(values_batch([b"a", b"b"]))
        assert writer.flush()["records"] == 2
        assert committed(config, topic) == []
        writer.end(True)
        assert committed(config, topic) == [b"a", b"b"]
        with pytest.raises(NativeError, match="was ended; make a new writer"):
            writer.begin()


def test_what_a_writer_aborts_is_never_seen(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    with writing(config, topic, transactional_id) as writer:
        writer.write(values_batch([b"gone"]))
        writer.flush()
        writer.end(False)
    with writing(config, topic, transactional_id) as writer:
        writer.write(values_batch([b"stays"]))
        writer.flush()
        writer.end(True)
    assert committed(config, topic) == [b"stays"]


def test_a_transaction_reaches_every_partition_and_topic_of_its_rows(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    import pyarrow as pa

    topics = [new_topic(3), new_topic(2)]
    rows = [(topic, partition) for topic, count in zip(topics, (3, 2), strict=True) for partition in range(count)]
    columns = {
        "topic": pa.array([topic for topic, _ in rows]),
        "partition": pa.array([partition for _, partition in rows], pa.int32()),
    }
    values = [f"{topic} {partition}".encode() for topic, partition in rows]
    with writing(config, None, transactional_id) as writer:
        writer.write(values_batch(values[:2], **{name: column[:2] for name, column in columns.items()}))
        writer.flush()
        writer.write(values_batch(values, **columns))
        writer.flush()
        writer.end(True)
    for (topic, partition), value in zip(rows, values, strict=True):
        assert set(committed(config, topic, partition)) == {value}


def test_another_client_ends_many_open_transactions_at_once(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    transactions = [prepared(config, topic, f"{transactional_id}-{number}", b"%d" % number) for number in range(12)]
    assert committed(config, topic) == []
    aborted, kept = transactions[:3], transactions[3:]
    for outcome in end(config, False, *aborted) + end(config, True, *kept):
        assert outcome["error"] is None, outcome
    assert committed(config, topic) == [b"%d" % number for number in range(3, 12)]


def test_an_end_may_be_repeated_but_not_turned_round(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    transaction = prepared(config, new_topic(), transactional_id, b"a")
    for _ in range(3):
        assert end(config, True, transaction)[0]["error"] is None
    (refused,) = end(config, False, transaction)
    assert refused["error"] == "INVALID_TXN_STATE"
    assert "is not open any more" in refused["message"]


def test_what_cannot_be_ended_is_reported_for_each_transaction(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    transaction = prepared(config, topic, transactional_id, b"a")
    unknown = {**transaction, "transactional_id": f"{transactional_id}-unknown"}
    stranger = {**transaction, "producer_id": transaction["producer_id"] + 1_000_000}
    late = {**transaction, "producer_epoch": transaction["producer_epoch"] + 5}
    outcomes = end(config, True, unknown, stranger, late, transaction)
    assert [outcome["transactional_id"] for outcome in outcomes] == [
        f"{transactional_id}-unknown",
        transactional_id,
        transactional_id,
        transactional_id,
    ]
    errors = [outcome["error"] for outcome in outcomes]
    assert errors[:2] == ["INVALID_PRODUCER_ID_MAPPING"] * 2
    assert errors[2] in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
    assert errors[3] is None
    assert committed(config, topic) == [b"a"]


def test_a_newer_writer_of_an_id_aborts_the_older_ones_transaction(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    with writing(config, topic, transactional_id) as older, writing(config, topic, transactional_id) as newer:
        first = older.begin()
        older.write(values_batch([b"old"]))
        older.flush()
        second = newer.begin()
        assert second["producer_id"] == first["producer_id"]
        assert second["producer_epoch"] > first["producer_epoch"]
        with pytest.raises(NativeError) as refused:
            older.end(True)
        assert refused.value.args[0] in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
        assert "newer producer" in refused.value.args[1]
        older.write(values_batch([b"older"]))
        with pytest.raises(NativeError) as refused:
            older.flush()
        assert "write again with a new writer" in refused.value.args[1]
        newer.write(values_batch([b"new"]))
        newer.flush()
        newer.end(True)
    assert committed(config, topic) == [b"new"]


def test_a_writer_that_wrote_nothing_has_nothing_to_end(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    for commit in (True, False):
        with writing(config, new_topic(), f"{transactional_id}-{commit}") as writer:
            writer.flush()
            assert writer.prepare() is None
            writer.begin()
            assert writer.prepare() is None
            writer.end(commit)


def test_only_what_is_acknowledged_is_prepared_or_committed(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    with writing(config, topic, transactional_id) as writer:
        writer.write(values_batch([b"a"]))
        for early in (writer.prepare, lambda: writer.end(True)):
            with pytest.raises(NativeError, match="flush first"):
                early()
        writer.flush()
        writer.end(True)
    assert committed(config, topic) == [b"a"]


def test_settings_that_promise_less_are_refused(config: Config, transactional_id: str) -> None:
    for less in ({"acks": "1"}, {"enable.idempotence": "false"}):
        with pytest.raises(NativeError, match="a transaction needs acks=all"):
            RecordWriter({**config, **less}, "t", transactional_id=transactional_id)
    with pytest.raises(NativeError, match="make it with a transactional id"):
        RecordWriter(config, "t").begin()


def test_a_longer_time_out_than_the_broker_allows_is_said(
    config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    config = {**config, "transaction.timeout.ms": "2000000"}
    with (
        writing(config, new_topic(), transactional_id) as writer,
        pytest.raises(NativeError, match=r"transaction\.max\.timeout\.ms") as refused,
    ):
        writer.begin()
    assert refused.value.args[0] == "INVALID_TRANSACTION_TIMEOUT"


def test_transactions_are_listed_by_the_pattern_of_their_ids(
    bootstrap: str, config: Config, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    transactions = [prepared(config, topic, f"{transactional_id}.{name}", b"x") for name in ("a1", "a2", "b1")]
    with Admin(bootstrap) as admin:
        found = admin.transactions(states=["Ongoing"], pattern=rf"{transactional_id}\.a.*")
        assert [transaction.transactional_id for transaction in found] == [
            f"{transactional_id}.a1",
            f"{transactional_id}.a2",
        ]
        assert admin.transactions(pattern=rf"{transactional_id}\.a") == [], "the whole id"
    assert [outcome["error"] for outcome in end(config, False, *transactions)] == [None] * 3
