"""Produce: what is taken, what is refused, and what the answer says."""

from tests.oracle.batches import BASE_TIME_MS, batch
from tests.oracle.compare import case
from tests.oracle.script import Script

YEAR_MS = 365 * 24 * 3_600_000


@case
def test_the_first_batch_of_a_partition_lies_at_offset_0(s: Script) -> None:
    s.produce(s.topic(), batch("a", "b"))
    s.says("NONE")
    s.holds(base_offset=0, log_start_offset=0, log_append_time_ms=-1)


@case
def test_every_version_of_produce_by_name_answers_alike(s: Script) -> None:
    topic = s.topic()
    for version in range(3, 13):
        s.produce(topic, batch("a"), version=version)
    s.says("NONE")
    s.holds(base_offset=9)


@case
def test_a_topic_by_its_id_in_version_13(s: Script) -> None:
    topic = s.topic()
    data = [{"topic_id": s.topic_id(topic), "partition_data": [{"index": 0, "records": batch("a")}]}]
    s.call("Produce", 13, acks=-1, timeout_ms=30_000, topic_data=data)
    s.says("NONE")


@case
def test_an_unknown_topic_id_is_refused(s: Script) -> None:
    unknown = "00000000-0000-4000-8000-00000000abcd"
    data = [{"topic_id": unknown, "partition_data": [{"index": 0, "records": batch("a")}]}]
    s.call("Produce", 13, acks=-1, timeout_ms=30_000, topic_data=data)
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_a_topic_that_does_not_exist_is_unknown_and_not_created_by_produce(s: Script) -> None:
    name = s.new("absent")
    s.produce(name, batch("a"))
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    s.call("Metadata", topics=[{"name": name}], allow_auto_topic_creation=False)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_partition_that_does_not_exist_is_unknown(s: Script) -> None:
    s.produce(s.topic(), batch("a"), 7)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_negative_partition_is_unknown(s: Script) -> None:
    s.produce(s.topic(), batch("a"), -1)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_one_bad_partition_does_not_harm_the_others_of_a_request(s: Script) -> None:
    topic = s.topic(partitions=2)
    parts = [{"index": index, "records": batch("a")} for index in (0, 5, 1)]
    s.call("Produce", acks=1, timeout_ms=30_000, topic_data=[{"name": topic, "partition_data": parts}])
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_acks_2_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a"), acks=2)
    s.says("INVALID_REQUIRED_ACKS")


@case
def test_acks_minus_2_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a"), acks=-2)
    s.says("INVALID_REQUIRED_ACKS")


@case
def test_acks_0_has_no_answer_and_the_record_is_there(s: Script) -> None:
    topic = s.topic()
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch("a")}]}]
    s.main.send("Produce", acks=0, timeout_ms=30_000, topic_data=data, answered=False)
    s.fetch(topic, 0)
    s.says("NONE")


@case
def test_acks_0_with_an_error_closes_the_connection(s: Script) -> None:
    topic, other = s.topic(), s.line()
    data = [{"name": topic, "partition_data": [{"index": 9, "records": batch("a")}]}]
    other.send("Produce", acks=0, timeout_ms=30_000, topic_data=data, answered=False)
    other.call("Metadata", topics=[{"name": topic}])
    s.holds(connection="UNREACHABLE")


@case
def test_a_batch_larger_than_the_topic_allows_is_too_large(s: Script) -> None:
    s.produce(s.topic(max_message_bytes="200"), batch("x" * 200))
    s.says("MESSAGE_TOO_LARGE")


@case
def test_a_batch_as_large_as_the_topic_allows_is_taken(s: Script) -> None:
    records = batch("x" * 100)
    s.produce(s.topic(max_message_bytes=str(len(records) // 2)), records)
    s.says("NONE")


@case
def test_a_batch_larger_than_a_segment_is_refused(s: Script) -> None:
    s.produce(s.topic(segment_bytes="1048576", max_message_bytes="3000000"), batch("x" * 1_100_000))
    s.says("RECORD_LIST_TOO_LARGE")


@case
def test_a_wrong_checksum_is_a_corrupt_message(s: Script) -> None:
    s.produce(s.topic(), batch("a", crc=1))
    s.says("CORRUPT_MESSAGE")


@case
def test_magic_3_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", magic=3))
    s.says("CORRUPT_MESSAGE")


@case
def test_magic_1_is_refused_in_a_new_version(s: Script) -> None:
    s.produce(s.topic(), batch("a", magic=1))
    s.says("INVALID_RECORD")


@case
def test_two_batches_in_one_field_are_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a") + batch("b"))
    s.says("INVALID_RECORD")


@case
def test_an_empty_records_field_is_refused(s: Script) -> None:
    s.produce(s.topic(), "")
    s.says("INVALID_RECORD")


@case
def test_a_batch_without_records_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch(count=0, last_offset_delta=0))
    s.says("INVALID_RECORD")


@case
def test_a_count_that_is_not_the_number_of_records_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", "b", count=3, last_offset_delta=2))
    s.says("INVALID_RECORD")


@case
def test_a_last_offset_delta_that_does_not_fit_the_count_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", "b", last_offset_delta=5))
    s.says("INVALID_RECORD")


@case
def test_offset_deltas_with_a_gap_are_taken_uncompressed(s: Script) -> None:
    s.produce(s.topic(), batch("a", "b", offset_deltas=(0, 2)))
    s.says("NONE")


@case
def test_a_base_offset_other_than_0_is_refused(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", base_offset=77))
    s.says("INVALID_RECORD")


@case
def test_a_control_batch_of_a_client_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", control=True, producer=(1, 0), sequence=0))
    s.says("INVALID_RECORD")


@case
def test_a_record_an_hour_and_more_ahead_is_refused_and_named(s: Script) -> None:
    s.produce(s.topic(), batch("a", time_ms=BASE_TIME_MS + 20 * YEAR_MS))
    s.says("INVALID_TIMESTAMP")
    s.holds(batch_index=0)


@case
def test_a_record_older_than_the_topic_allows_is_refused(s: Script) -> None:
    s.produce(s.topic(message_timestamp_before_max_ms="1000"), batch("a", "b"))
    s.says("INVALID_TIMESTAMP")


@case
def test_the_brokers_time_is_answered_when_the_topic_asks_for_it(s: Script) -> None:
    topic = s.topic(message_timestamp_type="LogAppendTime")
    s.produce(topic, batch("a", "b", step_ms=5))
    s.says("NONE")
    s.fetch(topic, 0)
    s.says("NONE")


@case
def test_a_record_without_a_time_keeps_minus_1(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", time_ms=-1))
    s.says("NONE")
    s.fetch(topic, 0)
    s.says("NONE")


@case
def test_a_compressed_batch_is_kept_as_it_was_sent(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b" * 500, codec="gzip"))
    s.says("NONE")
    s.fetch(topic, 0)
    s.says("NONE")


@case
def test_an_unknown_codec_is_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", attributes=5))
    s.says("UNKNOWN_SERVER_ERROR")


@case
def test_compressed_bytes_that_are_none_are_refused(s: Script) -> None:
    s.produce(s.topic(), batch("a", attributes=1))
    s.says("UNKNOWN_SERVER_ERROR")


@case
def test_a_record_of_null_key_and_null_value_is_taken(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch(None))
    s.says("NONE")
    s.fetch(topic, 0)


@case
def test_min_insync_replicas_of_one_is_met_by_the_leader(s: Script) -> None:
    s.produce(s.topic(min_insync_replicas="1"), batch("a"))
    s.says("NONE")


@case
def test_the_max_time_of_a_batch_is_what_its_records_say(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", step_ms=10, max_time_ms=BASE_TIME_MS + 1_000_000))
    s.says("NONE")
    s.fetch(topic, 0)


@case
def test_a_topic_named_twice_in_a_request_is_written_twice(s: Script) -> None:
    topic = s.topic()
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(value)}]} for value in "ab"]
    s.call("Produce", acks=-1, timeout_ms=30_000, topic_data=data)
    s.fetch(topic, 0)
    s.says("NONE")


@case
def test_a_request_without_topics_has_an_empty_answer(s: Script) -> None:
    s.call("Produce", acks=-1, timeout_ms=30_000, topic_data=[])
    s.says()
