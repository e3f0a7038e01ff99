"""ListOffsets and OffsetForLeaderEpoch: offsets by time, by sentinel, by epoch."""

from typing import Any

from tests.oracle.batches import BASE_TIME_MS, batch
from tests.oracle.compare import case
from tests.oracle.script import Script

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def filled(s: Script) -> str:
    """A topic with four records, 100 ms apart, of which the first was deleted."""
    topic = s.topic()
    s.fill(topic, "a", "b", "c", "d", step_ms=100)
    parts = [{"partition_index": 0, "offset": 1}]
    s.quietly("DeleteRecords", topics=[{"name": topic, "partitions": parts}], timeout_ms=30_000)
    return topic


def epochs(topic: str, partition: int = 0, **fields: int) -> list[dict[str, Any]]:
    """The topics of an OffsetForLeaderEpoch request."""
    return [{"topic": topic, "partitions": [{"partition": partition, **fields}]}]


@case
def test_latest_is_the_high_watermark(s: Script) -> None:
    s.list_offset(filled(s), LATEST)
    s.holds(offset=4, timestamp=-1, leader_epoch=0)


@case
def test_earliest_is_the_log_start(s: Script) -> None:
    s.list_offset(filled(s), EARLIEST)
    s.holds(offset=1, timestamp=-1)


@case
def test_latest_and_earliest_of_an_empty_partition_are_0(s: Script) -> None:
    topic = s.topic()
    s.list_offset(topic, LATEST)
    s.holds(offset=0)
    s.list_offset(topic, EARLIEST)
    s.holds(offset=0)


@case
def test_a_time_finds_the_first_record_at_or_after_it(s: Script) -> None:
    topic = filled(s)
    for after_ms in (-5, 0, 1, 100, 150, 299, 300):
        s.list_offset(topic, BASE_TIME_MS + after_ms)
    s.holds(offset=3, timestamp=BASE_TIME_MS + 300)


@case
def test_a_time_inside_a_batch_finds_the_record(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", "c", step_ms=10))
    s.list_offset(topic, BASE_TIME_MS + 11)
    s.holds(offset=2, timestamp=BASE_TIME_MS + 20)


@case
def test_a_time_inside_a_compressed_batch_finds_the_record(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", "c", step_ms=10, codec="gzip"))
    s.list_offset(topic, BASE_TIME_MS + 11)
    s.holds(offset=2, timestamp=BASE_TIME_MS + 20)


@case
def test_a_time_after_the_last_record_finds_nothing(s: Script) -> None:
    s.list_offset(filled(s), BASE_TIME_MS + 301)
    s.says("NONE")
    s.holds(offset=-1, timestamp=-1)


@case
def test_time_0_finds_the_first_record(s: Script) -> None:
    s.list_offset(filled(s), 0)
    s.holds(offset=1)


@case
def test_max_timestamp_finds_the_record_with_the_largest_time(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    s.produce(topic, batch("b", time_ms=BASE_TIME_MS + 900))
    s.produce(topic, batch("c", time_ms=BASE_TIME_MS + 5))
    s.list_offset(topic, MAX_TIMESTAMP)
    s.holds(offset=1, timestamp=BASE_TIME_MS + 900)


@case
def test_max_timestamp_inside_a_batch_with_times_out_of_order(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", "c", step_ms=-10, max_time_ms=BASE_TIME_MS))
    s.list_offset(topic, MAX_TIMESTAMP)
    s.holds(offset=0, timestamp=BASE_TIME_MS)


@case
def test_max_timestamp_of_an_empty_partition_is_nothing(s: Script) -> None:
    s.list_offset(s.topic(), MAX_TIMESTAMP)
    s.holds(offset=-1, timestamp=-1)


@case
def test_max_timestamp_of_appended_times_is_the_last_record_of_the_last_batch(s: Script) -> None:
    topic = s.topic(message_timestamp_type="LogAppendTime")
    s.produce(topic, batch("a", "b"))
    answer = s.list_offset(topic, MAX_TIMESTAMP)
    s.transcript.pop()
    s.keep("ListOffsets", {"offset": answer["topics"][0]["partitions"][0]["offset"]})


@case
def test_earliest_local_without_tiers_is_the_log_start(s: Script) -> None:
    s.list_offset(filled(s), EARLIEST_LOCAL)
    s.holds(offset=1)


@case
def test_latest_tiered_without_tiers_is_nothing(s: Script) -> None:
    s.list_offset(filled(s), LATEST_TIERED)


@case
def test_earliest_pending_upload_without_tiers(s: Script) -> None:
    s.list_offset(filled(s), EARLIEST_PENDING, version=11)


@case
def test_a_sentinel_that_the_version_does_not_know_is_refused(s: Script) -> None:
    topic = filled(s)
    s.list_offset(topic, MAX_TIMESTAMP, version=6)
    s.list_offset(topic, EARLIEST_LOCAL, version=7)
    s.list_offset(topic, LATEST_TIERED, version=8)
    s.list_offset(topic, EARLIEST_PENDING, version=10)


@case
def test_a_sentinel_that_does_not_exist_is_refused(s: Script) -> None:
    s.list_offset(filled(s), -7)


@case
def test_every_version_of_list_offsets_answers_alike(s: Script) -> None:
    topic = filled(s)
    for version in range(1, 12):
        s.list_offset(topic, LATEST, version=version)
        s.list_offset(topic, BASE_TIME_MS + 150, version=version)
    s.says("NONE")


@case
def test_offsets_of_an_unknown_topic(s: Script) -> None:
    s.list_offset(s.new("absent"), LATEST)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_offsets_of_an_unknown_partition(s: Script) -> None:
    s.list_offset(s.topic(), LATEST, 5)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_offsets_with_a_leader_epoch_of_the_future(s: Script) -> None:
    s.list_offset(s.topic(), LATEST, current_leader_epoch=3)
    s.says("UNKNOWN_LEADER_EPOCH")


@case
def test_the_same_partition_twice_is_an_invalid_request(s: Script) -> None:
    parts = [{"partition_index": 0, "timestamp": time} for time in (LATEST, EARLIEST)]
    s.call("ListOffsets", topics=[{"name": s.topic(), "partitions": parts}])
    s.says("INVALID_REQUEST")


@case
def test_the_same_partition_twice_is_invalid_for_that_partition_only(s: Script) -> None:
    parts = [{"partition_index": index, "timestamp": LATEST} for index in (0, 1, 1)]
    s.call("ListOffsets", topics=[{"name": s.topic(partitions=2), "partitions": parts}])


@case
def test_read_committed_latest_without_transactions_is_the_high_watermark(s: Script) -> None:
    s.list_offset(filled(s), LATEST, isolation_level=1)
    s.holds(offset=4)


@case
def test_the_end_of_the_current_leader_epoch_is_the_end_of_the_log(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(filled(s), leader_epoch=0))
    s.holds(end_offset=4, leader_epoch=0)


@case
def test_the_end_of_an_epoch_of_the_future_is_undefined(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(filled(s), leader_epoch=9))
    s.says("NONE")
    s.holds(end_offset=-1, leader_epoch=-1)


@case
def test_the_end_of_epoch_minus_1_is_undefined(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(filled(s), leader_epoch=-1))
    s.holds(end_offset=-1)


@case
def test_an_epoch_end_of_an_empty_partition(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(s.topic(), leader_epoch=0))


@case
def test_an_epoch_end_with_a_current_epoch_of_the_future(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(s.topic(), leader_epoch=0, current_leader_epoch=7))
    s.says("UNKNOWN_LEADER_EPOCH")


@case
def test_an_epoch_end_of_an_unknown_topic_and_partition(s: Script) -> None:
    s.call("OffsetForLeaderEpoch", topics=epochs(s.new("absent"), leader_epoch=0))
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    s.call("OffsetForLeaderEpoch", topics=epochs(s.topic(), 4, leader_epoch=0))
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_every_version_of_offset_for_leader_epoch_answers_alike(s: Script) -> None:
    topic = filled(s)
    for version in range(2, 5):
        s.call("OffsetForLeaderEpoch", version, topics=epochs(topic, leader_epoch=0))
    s.says("NONE")
