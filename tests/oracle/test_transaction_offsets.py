"""Offsets in transactions, describing and listing of transactions and producers."""

from typing import Any

from tests.oracle.batches import batch
from tests.oracle.compare import case
from tests.oracle.members import new_member, stable_member
from tests.oracle.script import Answer, Script, error_names
from tests.oracle.transactions import END_TV2, OFFSETS_BY_ID, OFFSETS_TV1, OFFSETS_TV2, PRODUCE_TV2, ended, new_producer

UNKNOWN_ID = "00000000-0000-4000-8000-000000000001"


def fetched(s: Script, group: str, topic: str, *, stable_only: bool = False) -> Answer:
    """OffsetFetch of partition 0."""
    asked = [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    return s.call("OffsetFetch", groups=asked, require_stable=stable_only)


def until_fetched(s: Script, group: str, topic: str, offset: int) -> None:
    """Wait until the committed offset is `offset` and stable."""

    def done(answer: Answer) -> bool:
        partition = answer["groups"][0]["topics"][0]["partitions"][0]
        return bool(partition["committed_offset"] == offset and not partition["error_code"])

    asked = [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    s.until(done, "OffsetFetch", groups=asked, require_stable=True)


def listed(s: Script, version: int = 1, **filters: Any) -> None:
    """ListTransactions, of this case only."""
    s.call("ListTransactions", version, **filters)
    s.only_mine()


@case
def test_an_offset_in_a_transaction_is_seen_after_its_commit_only(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.add_offsets(group)
    s.says("NONE")
    producer.commit_offset(group, topic, 7)
    s.says("NONE")
    fetched(s, group, topic)
    s.holds(committed_offset=-1)
    fetched(s, group, topic, stable_only=True)
    s.says("UNSTABLE_OFFSET_COMMIT")
    producer.end(True)
    until_fetched(s, group, topic, 7)
    s.says("NONE")


@case
def test_an_offset_in_an_aborted_transaction_is_never_seen(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 7)
    producer.end(False)
    until_fetched(s, group, topic, -1)
    s.says("NONE")


@case
def test_every_version_of_txn_offset_commit_answers_alike(s: Script) -> None:
    topic = s.topic()
    for version in range(5):
        producer, group = new_producer(s), s.new("group")
        producer.add_offsets(group)
        producer.commit_offset(group, topic, 7, version=version)
        s.says("NONE")


@case
def test_from_version_6_on_offsets_name_their_topics_by_id(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.commit_offset(group, s.topic_id(topic), 7, version=OFFSETS_BY_ID)
    s.says("NONE")
    producer.commit_offset(group, UNKNOWN_ID, 7, version=OFFSETS_BY_ID)
    s.says("UNKNOWN_TOPIC_ID")
    producer.commit_offset(
        s.new("absent"), s.topic_id(topic), 1, version=OFFSETS_BY_ID, generation_id=1, member_id="nobody"
    )
    s.says("GROUP_ID_NOT_FOUND")
    producer.end(True, END_TV2)
    s.says("NONE")
    until_fetched(s, group, topic, 7)


@case
def test_after_kip_890_offsets_need_not_be_added(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.commit_offset(group, topic, 7, version=OFFSETS_TV2)
    s.says("NONE")
    producer.end(True, END_TV2)
    s.says("NONE")
    until_fetched(s, group, topic, 7)


@case
def test_before_kip_890_offsets_that_were_not_added_are_refused(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.commit_offset(group, topic, 7, version=OFFSETS_TV1 - 1)
    s.says("INVALID_TXN_STATE")
    producer.commit_offset(group, topic, 7)
    s.says("TRANSACTION_ABORTABLE")


@case
def test_offsets_under_a_wrong_name(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.add_offsets(group, transactional_id=s.new("absent"))
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.add_offsets(group, producer_id=producer.producer_id + 1_000_000)
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.add_offsets(group, producer_epoch=9)
    s.says("PRODUCER_FENCED")
    producer.add_offsets("")
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 1, producer_epoch=9)
    producer.commit_offset(group, topic, 1, producer_id=producer.producer_id + 1_000_000)
    producer.commit_offset("", topic, 1)


@case
def test_offsets_of_a_member_are_taken_in_a_transaction(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    reader = stable_member(s, group)
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 1, generation_id=1, member_id=reader.member_id)
    s.says("NONE")


@case
def test_offsets_of_members_that_are_refused_in_a_transaction(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    reader = stable_member(s, group)
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 1, generation_id=0, member_id=reader.member_id)
    s.says("ILLEGAL_GENERATION")
    producer.commit_offset(group, topic, 1, generation_id=1, member_id="nobody")
    s.says("UNKNOWN_MEMBER_ID")
    producer.commit_offset(group, topic, 1)
    producer.commit_offset(group, topic, 1, generation_id=1, member_id=reader.member_id, group_instance_id="x")
    producer.commit_offset(s.new("absent"), topic, 1, generation_id=1, member_id="nobody")


@case
def test_offsets_between_join_and_sync_in_a_transaction(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    reader = new_member(s, group)
    producer.add_offsets(group)
    producer.commit_offset(group, topic, 1, generation_id=1, member_id=reader.member_id)


@case
def test_offsets_of_what_is_not_there_in_a_transaction(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.add_offsets(group)
    producer.commit_offset(group, s.new("absent"), 1)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    producer.commit_offset(group, topic, 1, 9)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_transactional_id_that_was_never_used_is_not_found(s: Script) -> None:
    s.call("DescribeTransactions", transactional_ids=[s.new("absent"), ""])


@case
def test_a_transaction_is_described_from_its_beginning_to_its_end(s: Script) -> None:
    producer, topic = new_producer(s), s.topic(partitions=2)
    s.call("DescribeTransactions", transactional_ids=[producer.txn])
    s.holds(transaction_state="Empty")
    producer.add(topic, 0, 1)
    s.call("DescribeTransactions", transactional_ids=[producer.txn])
    s.holds(transaction_state="Ongoing")
    producer.end(True)
    s.until(
        lambda answer: answer["transaction_states"][0]["transaction_state"] == "CompleteCommit",
        "DescribeTransactions",
        transactional_ids=[producer.txn],
    )
    s.holds(transaction_state="CompleteCommit")


@case
def test_transactions_are_listed_by_state_and_producer(s: Script) -> None:
    first, second, topic = new_producer(s), new_producer(s), s.topic()
    first.add(topic)
    listed(s, 0)
    listed(s, state_filters=["Ongoing"])
    listed(s, state_filters=["Ongoing", "Nonsense"])
    listed(s, producer_id_filters=[second.producer_id])
    listed(s, duration_filter=3_600_000)
    listed(s, 2, transactional_id_pattern=first.txn + ".*")
    s.says("NONE")
    listed(s, 2, transactional_id_pattern="(")


@case
def test_producers_of_a_partition_are_described(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    plain = s.producer()
    s.produce(topic, batch("a", "b", producer=plain, sequence=0))
    producer.add(topic)
    producer.produce(topic, "c")
    s.call("DescribeProducers", topics=[{"name": topic, "partition_indexes": [0]}])
    s.holds(current_txn_start_offset=2, last_sequence=1)
    producer.end(True)
    ended(s, topic, 4)
    s.call("DescribeProducers", topics=[{"name": topic, "partition_indexes": [0]}])
    s.says("NONE")


@case
def test_producers_of_what_is_not_there(s: Script) -> None:
    s.call("DescribeProducers", topics=[{"name": s.new("absent"), "partition_indexes": [0]}])
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    s.call("DescribeProducers", topics=[{"name": s.topic(), "partition_indexes": [5]}])
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_broker_may_ask_whether_a_partition_is_in_a_transaction(s: Script) -> None:
    producer, topic = new_producer(s), s.topic(partitions=2)
    producer.add(topic, 0)

    def ask(version: int, *partitions: int, **fields: Any) -> None:
        topics = [{"name": topic, "partitions": list(partitions)}]
        transaction = {**producer.named, "verify_only": True, "topics": topics, **fields}
        s.call("AddPartitionsToTxn", version, transactions=[transaction])

    ask(4, 0)
    s.says("NONE")
    ask(4, 1)
    ask(5, 1)
    ask(4, 0, producer_epoch=7)
    ask(4, 0, transactional_id=s.new("absent"))


@case
def test_a_read_of_offsets_goes_on_after_a_transaction_of_records_and_offsets(s: Script) -> None:
    producer, group, topic = new_producer(s), s.new("group"), s.topic()
    producer.produce(topic, "a", version=PRODUCE_TV2)
    producer.commit_offset(group, topic, 3, version=OFFSETS_TV2)
    s.says("NONE")
    producer.end(True, END_TV2)
    assert error_names(s.last) == ["NONE"]
    until_fetched(s, group, topic, 3)
    ended(s, topic, 2)
    s.fetch(topic, 0, isolation_level=1)
    s.says("NONE")
