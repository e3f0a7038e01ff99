"""Idempotent producers: ids, epochs, sequence numbers, duplicates."""

from tests.oracle.batches import batch
from tests.oracle.compare import case
from tests.oracle.script import Script

MAX_SEQUENCE = 2**31 - 1


@case
def test_a_producer_id_is_given_with_epoch_0(s: Script) -> None:
    for version in range(6):
        s.call("InitProducerId", version, transactional_id=None, transaction_timeout_ms=1000)
    s.says("NONE")
    s.holds(producer_epoch=0)


@case
def test_a_known_producer_id_without_a_transactional_id_is_given_a_new_one(s: Script) -> None:
    number, epoch = s.producer()
    s.call(
        "InitProducerId", transactional_id=None, transaction_timeout_ms=1000, producer_id=number, producer_epoch=epoch
    )
    s.says("NONE")


@case
def test_batches_in_sequence_are_taken(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", "b", producer=producer, sequence=0))
    s.produce(topic, batch("c", producer=producer, sequence=2))
    s.says("NONE")
    s.holds(base_offset=2)


@case
def test_a_gap_is_out_of_order(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=producer, sequence=0))
    s.produce(topic, batch("b", producer=producer, sequence=2))
    s.says("OUT_OF_ORDER_SEQUENCE_NUMBER")


@case
def test_a_duplicate_of_the_last_batch_has_the_first_answer(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    for _ in range(2):
        s.produce(topic, batch("a", "b", producer=producer, sequence=0))
        s.holds(base_offset=0)
    s.says("NONE")
    s.list_offset(topic, -1)
    s.holds(offset=2)


@case
def test_a_duplicate_of_the_fifth_last_batch_is_known(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    for sequence in range(5):
        s.produce(topic, batch("a", producer=producer, sequence=sequence))
    s.produce(topic, batch("a", producer=producer, sequence=0))
    s.says("NONE")
    s.holds(base_offset=0)


@case
def test_a_duplicate_of_the_sixth_last_batch_is_out_of_order(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    for sequence in range(6):
        s.produce(topic, batch("a", producer=producer, sequence=sequence))
    s.produce(topic, batch("a", producer=producer, sequence=0))


@case
def test_a_batch_that_overlaps_the_last_one_is_no_duplicate(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", "b", "c", producer=producer, sequence=0))
    s.produce(topic, batch("b", "c", producer=producer, sequence=1))


@case
def test_an_unknown_producer_may_begin_anywhere(s: Script) -> None:
    s.produce(s.topic(), batch("a", producer=s.producer(), sequence=7))


@case
def test_a_producer_id_that_was_never_given_is_taken(s: Script) -> None:
    s.produce(s.topic(), batch("a", producer=(2**40, 0), sequence=0))
    s.says("NONE")


@case
def test_an_older_epoch_is_fenced(s: Script) -> None:
    topic, (number, _) = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=(number, 3), sequence=0))
    s.produce(topic, batch("b", producer=(number, 2), sequence=1))
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_a_newer_epoch_begins_at_0(s: Script) -> None:
    topic, (number, _) = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=(number, 0), sequence=0))
    s.produce(topic, batch("b", producer=(number, 1), sequence=0))
    s.says("NONE")


@case
def test_a_newer_epoch_that_does_not_begin_at_0_is_out_of_order(s: Script) -> None:
    topic, (number, _) = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=(number, 0), sequence=0))
    s.produce(topic, batch("b", producer=(number, 1), sequence=1))
    s.says("OUT_OF_ORDER_SEQUENCE_NUMBER")


@case
def test_a_duplicate_of_the_old_epoch_after_the_new_one_is_fenced(s: Script) -> None:
    topic, (number, _) = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=(number, 0), sequence=0))
    s.produce(topic, batch("b", producer=(number, 1), sequence=0))
    s.produce(topic, batch("a", producer=(number, 0), sequence=0))
    s.says("INVALID_PRODUCER_EPOCH")


@case
def test_sequences_of_partitions_are_apart(s: Script) -> None:
    topic, producer = s.topic(partitions=2), s.producer()
    s.produce(topic, batch("a", producer=producer, sequence=0), 0)
    s.produce(topic, batch("a", producer=producer, sequence=0), 1)
    s.says("NONE")
    s.produce(topic, batch("b", producer=producer, sequence=5), 1)
    s.says("OUT_OF_ORDER_SEQUENCE_NUMBER")


@case
def test_the_sequence_wraps_to_0(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", "b", producer=producer, sequence=MAX_SEQUENCE - 1))
    s.produce(topic, batch("c", producer=producer, sequence=0))
    s.says("NONE")


@case
def test_a_batch_across_the_wrap(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=producer, sequence=MAX_SEQUENCE - 1))
    s.produce(topic, batch("b", "c", producer=producer, sequence=MAX_SEQUENCE))
    s.produce(topic, batch("d", producer=producer, sequence=1))
    s.says("NONE")


@case
def test_a_producer_id_with_a_negative_sequence_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", producer=s.producer(), sequence=-1))
    s.says("INVALID_RECORD")


@case
def test_a_producer_id_with_a_negative_epoch(s: Script) -> None:
    number, _ = s.producer()
    s.produce(s.topic(), batch("a", producer=(number, -1), sequence=0))


@case
def test_an_idempotent_batch_with_acks_1_is_taken(s: Script) -> None:
    s.produce(s.topic(), batch("a", producer=s.producer(), sequence=0), acks=1)
    s.says("NONE")


@case
def test_a_duplicate_is_known_when_its_records_were_deleted(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=producer, sequence=0))
    parts = [{"partition_index": 0, "offset": 1}]
    s.quietly("DeleteRecords", topics=[{"name": topic, "partitions": parts}], timeout_ms=30_000)
    s.produce(topic, batch("a", producer=producer, sequence=0))
    s.says("NONE")


@case
def test_a_duplicate_in_a_topic_with_the_brokers_time(s: Script) -> None:
    topic, producer = s.topic(message_timestamp_type="LogAppendTime"), s.producer()
    for _ in range(2):
        s.produce(topic, batch("a", producer=producer, sequence=0))
    s.says("NONE")


@case
def test_a_transactional_batch_without_a_transactional_id_is_refused(s: Script) -> None:
    topic, producer = s.topic(), s.producer()
    s.produce(topic, batch("a", producer=producer, sequence=0, transactional=True))
    s.says("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
