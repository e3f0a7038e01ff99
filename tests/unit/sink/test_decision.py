"""The stored decision reads back as it was, and nothing else is taken for one."""

import json

import pytest

from pylog_spark.errors import PylogError
from pylog_spark.sink.decision import (
    PARTITIONS,
    TOPIC_IDS_MAX,
    TRANSACTIONS_MAX,
    Decision,
    Transaction,
    decode,
    encode,
    partition_of,
)
from pylog_spark.sink.identity import BATCH, STREAM, Write, fresh_job, task_transaction_id

QUERY = Write(STREAM, "8e2c6f0e-9f0d-4a55-9d1c-6c7f0a3b1f11", 7)


def transactions(write: Write, count: int, *, prepared: bool = True) -> tuple[Transaction, ...]:
    job = fresh_job()
    return tuple(
        Transaction(task_transaction_id(write, number, job), 4000 + number, number % 3, prepared)
        for number in range(count)
    )


@pytest.mark.parametrize("write", [QUERY, Write(BATCH, "a.b", 0)])
@pytest.mark.parametrize("prepared", [True, False])
def test_a_decision_reads_back_as_it_was(write: Write, prepared: bool) -> None:
    decision = Decision(write, transactions(write, 3, prepared=prepared), 1_763_700_000_000)
    assert decode(write.key.encode(), encode(decision)) == decision


def test_a_decision_keeps_the_ids_of_the_topics_that_its_query_writes_to() -> None:
    decision = Decision(QUERY, transactions(QUERY, 1), 1, topic_ids={"orders": "id"})
    assert json.loads(encode(decision))["topic_ids"] == {"orders": "id"}
    assert decode(QUERY.key.encode(), encode(decision)) == decision


def test_a_decision_that_gave_a_write_up_reads_back() -> None:
    decision = Decision(QUERY, (), 1, aborted=True)
    assert decode(QUERY.key.encode(), encode(decision)) == decision


def test_the_document_is_what_its_description_says() -> None:
    transaction = Transaction(f"pylog-once.{QUERY.key}.7.0.1f00ba12c0ffee00", 4001, 1, True)
    assert json.loads(encode(Decision(QUERY, (transaction,), 1763700000000))) == {
        "format": 1,
        "kind": "stream",
        "version": 7,
        "decided_ms": 1763700000000,
        "prepared": True,
        "aborted": False,
        "transactions": [["0.1f00ba12c0ffee00", 4001, 1]],
    }


def test_the_largest_decision_fits_into_a_record_batch_of_a_megabyte() -> None:
    write = Write(STREAM, "q", 10**9)
    job = fresh_job()
    largest = tuple(
        Transaction(task_transaction_id(write, number, job, 365 * 86_400_000), 10**15 + number, 32767, True)
        for number in range(TRANSACTIONS_MAX)
    )
    topic_ids = {f"{number:0249}": "x" * 22 for number in range(TOPIC_IDS_MAX)}
    assert len(encode(Decision(write, largest, 10**13, topic_ids=topic_ids))) < 1_000_000


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b'{"format":2}',
        b'{"format":1,"version":1}',
        b"\xff",
        b'{"format":1,"kind":"stream","version":1}',
    ],
)
def test_what_is_no_decision_of_this_version_is_refused_with_a_sentence(value: bytes) -> None:
    with pytest.raises(PylogError) as caught:
        decode(b"q", value)
    assert caught.value.condition == "PYLOG_SINK_STATE"
    assert "__pylog_sink" in caught.value.sentence


def test_every_key_has_one_partition_whatever_its_hash() -> None:
    assert {partition_of(b"k", hash_) for hash_ in range(-100, 100)} == set(range(PARTITIONS))
    assert partition_of(b"k", -(2**31)) == 0
