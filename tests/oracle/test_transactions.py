"""Transactions: ids and epochs, adding partitions, producing, ending, what readers see."""

from tests.oracle.batches import batch
from tests.oracle.compare import case
from tests.oracle.script import Script
from tests.oracle.transactions import END_TV2, PRODUCE_TV1, PRODUCE_TV2, Transactional, ended, init, new_producer

DAY_MS = 24 * 3_600_000
# A record is in its transaction before that has taken too long, on a busy machine, too.
SOON_MS = 1_000
INT_MAX = 2**31 - 1


@case
def test_a_new_transactional_id_has_epoch_0(s: Script) -> None:
    for version in range(6):
        init(s, s.new("txn"), version=version)
        s.says("NONE")
        s.holds(producer_epoch=0)


@case
def test_a_second_producer_of_the_same_id_has_the_next_epoch(s: Script) -> None:
    txn = s.new("txn")
    init(s, txn)
    init(s, txn)
    s.says("NONE")
    s.holds(producer_epoch=1)


@case
def test_transaction_timeouts_that_are_refused(s: Script) -> None:
    for timeout_ms in (0, -1, DAY_MS):
        init(s, s.new("txn"), transaction_timeout_ms=timeout_ms)
        s.says("INVALID_TRANSACTION_TIMEOUT")


@case
def test_an_empty_transactional_id_is_an_invalid_request(s: Script) -> None:
    init(s, "")
    s.says("INVALID_REQUEST")


@case
def test_a_producer_id_without_an_epoch_is_an_invalid_request(s: Script) -> None:
    init(s, s.new("txn"), producer_id=5, producer_epoch=-1)
    s.says("INVALID_REQUEST")
    init(s, s.new("txn"), producer_id=-1, producer_epoch=3)
    s.says("INVALID_REQUEST")


@case
def test_a_producer_bumps_its_own_epoch(s: Script) -> None:
    producer = new_producer(s)
    init(s, producer.txn, producer_id=producer.producer_id, producer_epoch=producer.epoch)
    s.says("NONE")
    s.holds(producer_epoch=1)


@case
def test_a_retry_of_a_bump_has_the_same_answer(s: Script) -> None:
    producer = new_producer(s)
    for _ in range(2):
        init(s, producer.txn, producer_id=producer.producer_id, producer_epoch=producer.epoch)
        s.holds(producer_epoch=1)


@case
def test_a_bump_with_an_old_epoch_is_fenced(s: Script) -> None:
    producer = new_producer(s)
    producer.again()
    producer.again()
    init(s, producer.txn, producer_id=producer.producer_id, producer_epoch=0)
    s.says("PRODUCER_FENCED")
    init(s, producer.txn, version=3, producer_id=producer.producer_id, producer_epoch=0)
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_a_bump_with_another_producer_id(s: Script) -> None:
    producer = new_producer(s)
    init(s, producer.txn, producer_id=producer.producer_id + 1_000_000, producer_epoch=0)
    s.says("PRODUCER_FENCED")


@case
def test_a_bump_of_an_id_that_was_never_used(s: Script) -> None:
    init(s, s.new("txn"), producer_id=77, producer_epoch=0)


@case
def test_partitions_are_added(s: Script) -> None:
    producer, topic = new_producer(s), s.topic(partitions=2)
    producer.add(topic, 0, 1)
    s.says("NONE")
    producer.add(topic, 1)
    s.says("NONE")


@case
def test_every_version_of_add_partitions_answers_alike(s: Script) -> None:
    topic = s.topic()
    for version in range(4):
        named = {f"v3_and_below_{name}": value for name, value in new_producer(s).named.items()}
        topics = [{"name": topic, "partitions": [0]}]
        s.call("AddPartitionsToTxn", version, **named, v3_and_below_topics=topics)
        s.says("NONE")


@case
def test_one_unknown_partition_stops_the_others_from_being_added(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic, 0, 7)
    s.says("OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION")
    producer.add(s.new("absent"), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_adding_partitions_under_a_wrong_name(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic, transactional_id=s.new("absent"))
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.add(topic, producer_id=producer.producer_id + 1_000_000)
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.add(topic, producer_epoch=5)
    s.says("PRODUCER_FENCED")
    producer.add(topic, transactional_id="")
    s.says("INVALID_REQUEST")


@case
def test_a_fenced_producer_adds_nothing_and_ends_nothing(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.again()
    producer.add(topic)
    s.says("PRODUCER_FENCED")
    producer.end(True)
    s.says("PRODUCER_FENCED")
    producer.end(False, END_TV2)
    s.says("PRODUCER_FENCED")


@case
def test_old_clients_get_the_older_error_when_they_are_fenced(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.again()
    s.call("EndTxn", 1, **producer.named, committed=True)
    s.says("INVALID_PRODUCER_EPOCH")
    topics = [{"name": topic, "partitions": [0]}]
    s.call(
        "AddPartitionsToTxn",
        1,
        **{f"v3_and_below_{name}": value for name, value in producer.named.items()},
        v3_and_below_topics=topics,
    )
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_ending_a_transaction_that_did_not_begin(s: Script) -> None:
    producer = new_producer(s)
    producer.end(True)
    s.says("INVALID_TXN_STATE")
    producer.end(False)
    s.says("INVALID_TXN_STATE")


@case
def test_aborting_an_empty_transaction_after_kip_890(s: Script) -> None:
    new_producer(s).end(False, END_TV2)
    s.says("NONE")


@case
def test_committing_an_empty_transaction_after_kip_890(s: Script) -> None:
    s.call("EndTxn", END_TV2, **new_producer(s).named, committed=True)


@case
def test_ending_under_a_wrong_name(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.end(True, transactional_id=s.new("absent"))
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.end(True, producer_id=producer.producer_id + 1_000_000)
    s.says("INVALID_PRODUCER_ID_MAPPING")
    producer.end(True, producer_epoch=9)
    s.says("PRODUCER_FENCED")
    producer.end(True, transactional_id="")
    s.says("INVALID_REQUEST")


@case
def test_a_commit_sent_twice_is_good_and_an_abort_after_it_is_not(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.end(True)
    s.says("NONE")
    producer.end(True)
    s.says("NONE")
    producer.end(False)
    s.says("INVALID_TXN_STATE")


@case
def test_other_records_under_the_sequence_of_an_aborted_one(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "aborted")
    producer.end(False)
    ended(s, topic, 2)
    producer.add(topic)
    producer.produce(topic, "other", sequence=0)
    # Kafka says that it has the second one, too, which it does not write.
    s.says("NONE")


@case
def test_an_abort_sent_twice_is_good_and_a_commit_after_it_is_not(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.end(False)
    producer.end(False)
    s.says("NONE")
    producer.end(True)
    s.says("INVALID_TXN_STATE")


@case
def test_after_kip_890_every_end_bumps_the_epoch_and_its_retry_says_the_same(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    old = dict(producer.named)
    producer.end(True, END_TV2)
    s.holds(producer_epoch=1)
    ended(s, topic, 1)
    s.until(lambda answer: answer["error_code"] != 51, "EndTxn", END_TV2, **old, committed=True)
    s.says("NONE")
    s.holds(producer_epoch=1)
    s.until(lambda answer: answer["error_code"] != 51, "EndTxn", END_TV2, **old, committed=False)


@case
def test_a_committed_record_is_seen_by_all_with_its_marker_behind_it(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    s.says("NONE")
    producer.end(True)
    ended(s, topic, 2)
    s.fetch(topic, 0, isolation_level=1)
    s.holds(high_watermark=2, last_stable_offset=2)


@case
def test_an_open_transaction_holds_the_last_stable_offset(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    s.fill(topic, "before")
    producer.add(topic)
    producer.produce(topic, "a")
    s.produce(topic, batch("after"))
    s.fetch(topic, 0, isolation_level=1)
    s.holds(high_watermark=3, last_stable_offset=1)
    s.fetch(topic, 0)
    s.holds(high_watermark=3, last_stable_offset=1)
    s.fetch(topic, 2, isolation_level=1)
    s.says("NONE")
    s.list_offset(topic, -1, isolation_level=1)
    s.holds(offset=1)
    s.list_offset(topic, -1)
    s.holds(offset=3)


@case
def test_an_aborted_transaction_is_listed_for_readers_of_committed_records_only(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.end(False)
    ended(s, topic, 2)
    s.fetch(topic, 0, isolation_level=1)
    s.holds(first_offset=0)
    s.fetch(topic, 0)
    s.fetch(topic, 1, isolation_level=1)
    s.fetch(topic, 2, isolation_level=1)
    s.says("NONE")


@case
def test_two_aborted_transactions_of_two_producers_are_both_listed(s: Script) -> None:
    first, second, topic = new_producer(s), new_producer(s), s.topic()
    for each in (first, second):
        each.add(topic)
        each.produce(topic, "a")
    first.end(False)
    ended(s, topic, 1)
    s.fetch(topic, 0, isolation_level=1)
    second.end(False)
    ended(s, topic, 4)
    s.fetch(topic, 0, isolation_level=1)
    s.says("NONE")


@case
def test_a_transactional_batch_without_its_partition_added_is_refused(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.produce(topic, "a", version=PRODUCE_TV1 - 1)
    s.says("INVALID_TXN_STATE")
    producer.produce(topic, "a")
    s.says("TRANSACTION_ABORTABLE")


@case
def test_a_batch_after_the_end_of_its_transaction_is_refused(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.end(True)
    ended(s, topic, 2)
    producer.produce(topic, "late", version=PRODUCE_TV1 - 1)
    s.says("INVALID_TXN_STATE")
    producer.produce(topic, "late")
    s.says("TRANSACTION_ABORTABLE")


@case
def test_after_kip_890_produce_adds_its_partition(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.produce(topic, "a", version=PRODUCE_TV2)
    s.says("NONE")
    producer.end(True, END_TV2)
    s.says("NONE")
    ended(s, topic, 2)
    producer.produce(topic, "b", version=PRODUCE_TV2)
    s.says("NONE")
    producer.end(True, END_TV2)
    ended(s, topic, 4)
    s.fetch(topic, 0, isolation_level=1)


@case
def test_after_kip_890_a_late_batch_of_the_last_transaction_is_fenced(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.produce(topic, "a", version=PRODUCE_TV2)
    old = {"producer_epoch": producer.epoch, "sequence": 1}
    producer.end(True, END_TV2)
    ended(s, topic, 2)
    producer.produce(topic, "late", version=PRODUCE_TV2, **old)
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_a_fenced_producers_batch_is_refused(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.again()
    producer.produce(topic, "b")
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_a_new_producer_aborts_what_the_old_one_left_open(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.again()
    s.says("NONE")
    ended(s, topic, 2)
    s.fetch(topic, 0, isolation_level=1)
    s.holds(first_offset=0)


@case
def test_a_sequence_gap_in_a_transaction_is_out_of_order(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.produce(topic, "b", sequence=5)
    s.says("OUT_OF_ORDER_SEQUENCE_NUMBER")


@case
def test_a_duplicate_in_a_transaction_has_the_first_answer(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    producer.produce(topic, "a", sequence=0)
    s.says("NONE")
    s.holds(base_offset=0)


@case
def test_a_plain_batch_of_a_transactional_producer_in_an_open_transaction(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a")
    s.produce(topic, batch("b", producer=(producer.producer_id, producer.epoch), sequence=1))


@case
def test_transactional_batches_need_acks_of_all_and_a_name(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.add(topic)
    producer.produce(topic, "a", acks=1)
    producer.produce(topic, "a", transactional_id=None)
    s.says("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")


@case
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    answer = init(s, producer.txn, transaction_timeout_ms=SOON_MS)
    producer.producer_id, producer.epoch = answer["producer_id"], answer["producer_epoch"]
    producer.add(topic)
    producer.produce(topic, "a")
    ended(s, topic, 2)
    producer.end(True)
    producer.produce(topic, "b")
    init(s, producer.txn, producer_id=producer.producer_id, producer_epoch=producer.epoch)


@case
def test_with_two_phases_a_transaction_does_not_time_out(s: Script) -> None:
    transactional_id, producer, topics = s.new("txn"), new_producer(s), [s.topic(), s.topic()]
    prepares = init(s, transactional_id, version=6, enable_2_pc=True, transaction_timeout_ms=SOON_MS)
    s.says("NONE")
    s.holds(producer_epoch=0, ongoing_txn_producer_id=-1)
    kept = Transactional(s, transactional_id, prepares["producer_id"], prepares["producer_epoch"])
    kept.produce(topics[0], "kept", version=PRODUCE_TV2)
    answer = init(s, producer.txn, transaction_timeout_ms=SOON_MS)
    producer.producer_id, producer.epoch = answer["producer_id"], answer["producer_epoch"]
    producer.produce(topics[1], "late", version=PRODUCE_TV2)
    ended(s, topics[1], 2)
    s.call("DescribeTransactions", transactional_ids=[transactional_id])
    s.holds(transaction_state="Ongoing", transaction_timeout_ms=INT_MAX)
    kept.end(True, END_TV2)
    s.says("NONE")


@case
def test_a_prepared_transaction_is_not_kept(s: Script) -> None:
    producer, topic = new_producer(s), s.topic()
    producer.produce(topic, "a", version=PRODUCE_TV2)
    named = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    init(s, producer.txn, version=6, enable_2_pc=True, keep_prepared_txn=True, **named)
    s.says("UNSUPPORTED_VERSION")


@case
def test_a_transaction_over_two_partitions_is_committed_in_both(s: Script) -> None:
    producer, topic = new_producer(s), s.topic(partitions=2)
    producer.add(topic, 0, 1)
    producer.produce(topic, "a", 0)
    producer.produce(topic, "b", 1, sequence=0)
    producer.end(True)
    for partition in (0, 1):
        ended(s, topic, 2, partition)
        s.fetch(topic, 0, partition, isolation_level=1)
    s.says("NONE")


@case
def test_the_coordinator_of_a_transactional_id(s: Script) -> None:
    key = s.new("txn")
    wanted = {"key_type": 1, "coordinator_keys": [key]}
    s.until(lambda answer: not answer["coordinators"][0]["error_code"], "FindCoordinator", **wanted)
    s.says("NONE")
    s.call("FindCoordinator", key_type=1, coordinator_keys=[""])
