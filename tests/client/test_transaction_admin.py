"""Transactions through `Admin`, begun by confluent-kafka, at pylog's broker and at Apache Kafka."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from pylog_spark.client.admin import LATEST, Admin
from pylog_spark.client.errors import LogError
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster

TIMEOUT_S = 30


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap, {"default.api.timeout.ms": "30000"}) as admin:
        yield admin


@pytest.fixture
def transactional_id() -> str:
    return f"transaction-{uuid.uuid4()}"


def begun(bootstrap: str, transactional_id: str, topic: str) -> Producer:
    """A producer whose transaction holds one record."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    return producer


def ends(admin: Admin, topic: str) -> tuple[int, int]:
    """What readers of uncommitted and of committed data see of the log's end."""
    both = []
    for isolation in ("read_uncommitted", "read_committed"):
        ((_, _, end, _),) = admin._client.list_offsets([(topic, 0, LATEST)], isolation)
        both.append(end)
    return both[0], both[1]


def wait_for_ends(admin: Admin, topic: str, expected: tuple[int, int]) -> None:
    """The markers are written after the answer."""
    until(lambda: ends(admin, topic) == expected, lambda: f"the ends {ends(admin, topic)} become {expected}")


def test_an_open_transaction_is_listed_described_and_ended(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    producer = begun(bootstrap, transactional_id, topic)
    listed = {transaction.transactional_id: transaction for transaction in admin.transactions()}
    assert listed[transactional_id].state == "Ongoing"
    found = admin.transaction(transactional_id)
    assert (found.state, found.partitions) == ("Ongoing", ((topic, 0),))
    assert found.start_time_ms > 0
    (writers,) = admin.producers([(topic, 0)])
    (writer,) = writers.producers
    assert (writer.producer_id, writer.transaction_start_offset) == (found.producer_id, 0)
    assert ends(admin, topic) == (1, 0)
    producer.commit_transaction(TIMEOUT_S)
    wait_for_ends(admin, topic, (2, 2))
    assert admin.transaction(transactional_id).state in ("CompleteCommit", "PrepareCommit")
    assert transactional_id not in {
        transaction.transactional_id for transaction in admin.transactions(states=["Ongoing"])
    }


def test_a_fenced_producers_transaction_is_aborted(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    producer = begun(bootstrap, transactional_id, topic)
    admin.fence_producer(transactional_id)
    wait_for_ends(admin, topic, (2, 2))
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(TIMEOUT_S)
    assert refused.value.args[0].fatal()


def test_a_transaction_that_hangs_is_ended_in_its_partition(
    admin: Admin, bootstrap: str, new_topic: Callable[..., str], transactional_id: str
) -> None:
    topic = new_topic()
    producer = begun(bootstrap, transactional_id, topic)
    ((writer,),) = [partition.producers for partition in admin.producers([(topic, 0)])]
    admin.abort_transaction(topic, 0, writer.producer_id, writer.producer_epoch, writer.coordinator_epoch)
    wait_for_ends(admin, topic, (2, 2))
    assert [partition.transaction_start_offset for partition in admin.producers([(topic, 0)])[0].producers] == [-1]
    producer.purge()


def test_an_unknown_transactional_id_is_said_to_be(admin: Admin, transactional_id: str) -> None:
    with pytest.raises(LogError) as refused:
        admin.transaction(transactional_id)
    assert refused.value.kind == "TRANSACTIONAL_ID_NOT_FOUND"
    assert refused.value.sentence == f"Transactional id '{transactional_id}' does not exist."
