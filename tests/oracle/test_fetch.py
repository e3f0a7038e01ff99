"""Fetch: positions, epochs, limits, sessions."""

from tests.oracle.batches import batch
from tests.oracle.compare import case
from tests.oracle.script import Script

UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"


def by_id(topic_id: str, offset: int = 0, **fields: object) -> list[dict[str, object]]:
    """The topics of a request from version 13 on."""
    wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields}
    return [{"topic_id": topic_id, "partitions": [wanted]}]


@case
def test_records_come_from_the_offset_asked_for(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b", "c")
    s.fetch(topic, 1)
    s.says("NONE")
    s.holds(high_watermark=3, last_stable_offset=3, log_start_offset=0)


@case
def test_an_offset_inside_a_batch_brings_the_whole_batch(s: Script) -> None:
    topic = s.topic()
    s.produce(topic, batch("a", "b", "c"))
    s.fetch(topic, 2)
    s.says("NONE")


@case
def test_every_version_of_fetch_by_name_answers_alike(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    for version in range(4, 13):
        s.fetch(topic, 0, version=version)
    s.says("NONE")


@case
def test_every_version_of_fetch_by_id_answers_alike(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    for version in range(13, 19):
        s.call("Fetch", version, max_wait_ms=0, min_bytes=0, topics=by_id(s.topic_id(topic)))
    s.says("NONE")


@case
def test_the_end_of_the_log_is_an_empty_answer(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    s.fetch(topic, 1)
    s.says("NONE")


@case
def test_an_offset_behind_the_end_is_out_of_range(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    s.fetch(topic, 2)
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_a_negative_offset_is_out_of_range(s: Script) -> None:
    s.fetch(s.topic(), -1)
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_an_offset_before_the_start_is_out_of_range(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b")
    parts = [{"partition_index": 0, "offset": 1}]
    s.quietly("DeleteRecords", topics=[{"name": topic, "partitions": parts}], timeout_ms=30_000)
    s.fetch(topic, 0)
    s.says("OFFSET_OUT_OF_RANGE")
    s.fetch(topic, 1)
    s.says("NONE")


@case
def test_an_unknown_topic_by_name(s: Script) -> None:
    s.fetch(s.new("absent"), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_an_unknown_partition(s: Script) -> None:
    s.fetch(s.topic(), 0, 9)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_an_unknown_topic_id(s: Script) -> None:
    s.call("Fetch", 13, max_wait_ms=0, min_bytes=0, topics=by_id(UNKNOWN_ID))
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_the_zero_topic_id_is_unknown(s: Script) -> None:
    s.call("Fetch", 13, max_wait_ms=0, min_bytes=0, topics=by_id("00000000-0000-0000-0000-000000000000"))
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_the_id_of_a_deleted_and_recreated_topic_is_unknown(s: Script) -> None:
    topic = s.topic()
    old = s.topic_id(topic)
    s.quietly("DeleteTopics", topics=[{"name": topic}], timeout_ms=30_000)
    s.until(
        lambda answer: bool(answer["topics"][0]["error_code"] == 0),
        "CreateTopics",
        topics=[{"name": topic, "num_partitions": 1, "replication_factor": 1}],
    )
    s.without("configs")
    s.until(
        lambda answer: answer["responses"][0]["partitions"][0]["error_code"] == 100,
        "Fetch",
        13,
        max_wait_ms=0,
        min_bytes=0,
        topics=by_id(old),
    )
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_a_newer_leader_epoch_than_the_brokers_is_unknown(s: Script) -> None:
    s.fetch(s.topic(), 0, current_leader_epoch=5)
    s.says("UNKNOWN_LEADER_EPOCH")


@case
def test_the_leader_epoch_that_is_right(s: Script) -> None:
    s.fetch(s.topic(), 0, current_leader_epoch=0)
    s.says("NONE")


@case
def test_a_last_fetched_epoch_that_agrees_with_the_log(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b")
    s.fetch(topic, 1, last_fetched_epoch=0)
    s.says("NONE")


@case
def test_a_last_fetched_epoch_that_never_was_is_out_of_range(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b")
    s.fetch(topic, 1, last_fetched_epoch=4)
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_a_batch_larger_than_the_partition_limit_comes_whole_when_it_is_the_first(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "x" * 500, "y" * 500)
    s.fetch(topic, 0, partition_max_bytes=10)
    s.says("NONE")


@case
def test_a_batch_larger_than_the_request_limit_comes_whole_when_it_is_the_first(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "x" * 500, "y" * 500)
    s.fetch(topic, 0, max_bytes=10)
    s.says("NONE")


@case
def test_a_partition_limit_of_0_still_brings_the_first_batch(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    s.fetch(topic, 0, partition_max_bytes=0)
    s.says("NONE")


@case
def test_the_second_partition_gets_nothing_when_the_first_used_up_the_request(s: Script) -> None:
    topic = s.topic(partitions=2)
    s.fill(topic, "x" * 500)
    s.fill(topic, "y" * 500, partition=1)
    parts = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in (0, 1)]
    s.call("Fetch", max_wait_ms=0, min_bytes=1, max_bytes=100, topics=[{"topic": topic, "partitions": parts}])
    s.says("NONE")


@case
def test_the_partition_limit_cuts_between_batches_of_the_log_as_kafka_does(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "x" * 500, "y" * 500, "z" * 500)
    s.fetch(topic, 0, partition_max_bytes=1200)
    s.says("NONE")


@case
def test_one_partition_out_of_range_does_not_harm_the_other(s: Script) -> None:
    topic = s.topic(partitions=2)
    s.fill(topic, "a")
    parts = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in (0, 1)]
    parts[1]["fetch_offset"] = 44
    s.call("Fetch", max_wait_ms=0, min_bytes=1, topics=[{"topic": topic, "partitions": parts}])
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_an_error_is_answered_at_once_whatever_the_wait(s: Script) -> None:
    s.fetch(s.topic(), 9, max_wait_ms=15_000, min_bytes=1)
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_a_waiting_fetch_is_answered_by_a_produce(s: Script) -> None:
    topic, reader = s.topic(), s.line()
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    reader.send("Fetch", max_wait_ms=15_000, min_bytes=1, topics=[{"topic": topic, "partitions": wanted}])
    s.produce(topic, batch("a"))
    reader.receive()
    s.says("NONE")


@case
def test_read_committed_without_transactions_sees_all_and_an_empty_list_of_aborted(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    s.fetch(topic, 0, isolation_level=1)
    s.says("NONE")


@case
def test_isolation_level_7_is_refused(s: Script) -> None:
    s.fetch(s.topic(), 0, isolation_level=7)


@case
def test_a_fetch_without_topics_and_without_a_session_is_empty(s: Script) -> None:
    s.call("Fetch", max_wait_ms=0, min_bytes=0, topics=[])
    s.says("NONE")


@case
def test_a_session_that_was_never_opened_is_not_found(s: Script) -> None:
    s.fetch(s.topic(), 0, session_id=4711, session_epoch=3)
    s.says("FETCH_SESSION_ID_NOT_FOUND")


@case
def test_closing_a_session_that_was_never_opened_is_not_found(s: Script) -> None:
    s.call("Fetch", max_wait_ms=0, min_bytes=0, session_id=4711, session_epoch=-1)


@case
def test_session_id_0_with_an_epoch_is_refused(s: Script) -> None:
    s.fetch(s.topic(), 0, session_id=0, session_epoch=3)


@case
def test_a_full_fetch_opens_a_session_and_an_incremental_one_tells_only_what_changed(s: Script) -> None:
    topic = s.topic(partitions=2)
    parts = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in (0, 1)]
    wanted = [{"topic": topic, "partitions": parts}]
    session = s.call("Fetch", max_wait_ms=0, min_bytes=0, session_epoch=0, topics=wanted)["session_id"]
    s.produce(topic, batch("a"), 1)
    s.call("Fetch", max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=1)
    s.says("NONE")


@case
def test_a_sessions_epoch_out_of_order_is_refused(s: Script) -> None:
    wanted = [{"topic": s.topic(), "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 99}]}]
    session = s.call("Fetch", max_wait_ms=0, min_bytes=0, session_epoch=0, topics=wanted)["session_id"]
    s.call("Fetch", max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=5)
    s.says("INVALID_FETCH_SESSION_EPOCH")


@case
def test_a_consumer_cannot_pose_as_a_replica(s: Script) -> None:
    s.fetch(s.topic(), 0, version=11, replica_id=5)
