"""Metadata, CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords, DescribeCluster."""

from typing import Any

from tests.oracle.compare import case
from tests.oracle.script import Script

UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"


def create(s: Script, *, validate_only: bool = False, version: int | None = None, **topic: Any) -> None:
    """CreateTopics of one topic of 1 partition and 1 replica, by default; its settings are not compared."""
    wanted = {"name": s.new("made"), "num_partitions": 1, "replication_factor": 1, **topic}
    s.call("CreateTopics", version, topics=[wanted], timeout_ms=30_000, validate_only=validate_only)
    s.without("configs")


def delete_records(s: Script, topic: str, offset: int, partition: int = 0) -> None:
    """DeleteRecords of one partition."""
    parts = [{"partition_index": partition, "offset": offset}]
    s.call("DeleteRecords", topics=[{"name": topic, "partitions": parts}], timeout_ms=30_000)


@case
def test_a_topic_is_created_with_what_was_asked(s: Script) -> None:
    create(s, num_partitions=3)
    s.says("NONE")
    s.holds(num_partitions=3, replication_factor=1)


@case
def test_minus_1_takes_the_brokers_defaults(s: Script) -> None:
    create(s, num_partitions=-1, replication_factor=-1)
    s.says("NONE")
    s.holds(num_partitions=2, replication_factor=1)


@case
def test_the_settings_of_a_new_topic_are_in_the_answer(s: Script) -> None:
    topic = {"name": s.new("made"), "num_partitions": 1, "replication_factor": 1}
    s.call("CreateTopics", topics=[{**topic, "configs": [{"name": "retention.ms", "value": "5000"}]}])
    s.says("NONE")
    s.holds(name="retention.ms", value="5000", config_source=1)


@case
def test_every_version_of_create_topics_answers_alike(s: Script) -> None:
    for version in range(2, 8):
        create(s, version=version)
    s.says("NONE")


@case
def test_a_topic_that_exists_cannot_be_created(s: Script) -> None:
    create(s, name=s.topic())
    s.says("TOPIC_ALREADY_EXISTS")


@case
def test_a_topic_that_collides_by_dot_and_underscore(s: Script) -> None:
    name = s.new("a.b")
    create(s, name=name)
    create(s, name=name.replace("a.b", "a_b"))
    s.says("INVALID_TOPIC_EXCEPTION")


@case
def test_names_that_no_topic_may_have(s: Script) -> None:
    for name in ("", ".", "..", "a b", "a/b", "ä", "x" * 250):
        create(s, name=name)
        s.says("INVALID_TOPIC_EXCEPTION")


@case
def test_no_partition_and_fewer_are_refused(s: Script) -> None:
    create(s, num_partitions=0)
    s.says("INVALID_PARTITIONS")
    create(s, num_partitions=-2)
    s.says("INVALID_PARTITIONS")


@case
def test_replicas_that_the_cluster_cannot_hold(s: Script) -> None:
    for count in (0, -2, 2):
        create(s, replication_factor=count)
        s.says("INVALID_REPLICATION_FACTOR")


@case
def test_an_unknown_setting_is_an_invalid_config(s: Script) -> None:
    create(s, configs=[{"name": "no.such.setting", "value": "1"}])
    s.says("INVALID_CONFIG")


@case
def test_values_that_a_setting_cannot_have(s: Script) -> None:
    for name, value in (
        ("retention.ms", "x"),
        ("retention.ms", "-2"),
        ("cleanup.policy", "wash"),
        ("segment.bytes", "1"),
        ("compression.type", "rar"),
        ("retention.ms", None),
        ("max.message.bytes", "-1"),
        ("min.insync.replicas", "0"),
    ):
        create(s, configs=[{"name": name, "value": value}])
        s.says("INVALID_CONFIG")


@case
def test_the_same_name_twice_in_a_request(s: Script) -> None:
    topic = {"name": s.new("twice"), "num_partitions": 1, "replication_factor": 1}
    s.call("CreateTopics", topics=[topic, topic], timeout_ms=30_000)
    s.says("INVALID_REQUEST")


@case
def test_no_topic_is_called_like_the_log_of_the_metadata(s: Script) -> None:
    for dry in (True, False):
        create(s, name="__cluster_metadata", validate_only=dry)
        s.says("INVALID_REQUEST")


@case
def test_validate_only_creates_nothing(s: Script) -> None:
    name = s.new("dry")
    create(s, name=name, validate_only=True)
    s.says("NONE")
    s.call("Metadata", topics=[{"name": name}], allow_auto_topic_creation=False)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_validate_only_tells_errors(s: Script) -> None:
    create(s, name=s.topic(), validate_only=True)
    s.says("TOPIC_ALREADY_EXISTS")


@case
def test_an_assignment_to_the_one_broker(s: Script) -> None:
    assignments = [{"partition_index": index, "broker_ids": [1]} for index in (0, 1)]
    create(s, num_partitions=-1, replication_factor=-1, assignments=assignments)
    s.says("NONE")
    s.holds(num_partitions=2)


@case
def test_an_assignment_to_a_broker_that_is_not_there(s: Script) -> None:
    create(s, num_partitions=-1, replication_factor=-1, assignments=[{"partition_index": 0, "broker_ids": [7]}])
    s.says("INVALID_REPLICA_ASSIGNMENT")


@case
def test_an_assignment_with_a_gap(s: Script) -> None:
    create(s, num_partitions=-1, replication_factor=-1, assignments=[{"partition_index": 1, "broker_ids": [1]}])
    s.says("INVALID_REPLICA_ASSIGNMENT")


@case
def test_an_assignment_beside_a_number_of_partitions(s: Script) -> None:
    create(s, num_partitions=1, assignments=[{"partition_index": 0, "broker_ids": [1]}])
    s.says("INVALID_REQUEST")


@case
def test_a_deleted_topic_is_gone(s: Script) -> None:
    topic = s.topic()
    s.call("DeleteTopics", topics=[{"name": topic}], timeout_ms=30_000)
    s.says("NONE")
    s.until(
        lambda answer: answer["topics"][0]["error_code"] == 3,
        "Metadata",
        topics=[{"name": topic}],
        allow_auto_topic_creation=False,
    )
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_every_version_of_delete_topics_by_name_answers_alike(s: Script) -> None:
    for version in range(1, 6):
        s.call("DeleteTopics", version, topic_names=[s.topic(), s.new("absent")], timeout_ms=30_000)
        s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_a_topic_is_deleted_by_its_id(s: Script) -> None:
    s.call("DeleteTopics", topics=[{"name": None, "topic_id": s.topic_id(s.topic())}], timeout_ms=30_000)
    s.says("NONE")


@case
def test_deleting_what_is_not_there(s: Script) -> None:
    s.call("DeleteTopics", topics=[{"name": s.new("absent")}], timeout_ms=30_000)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    s.call("DeleteTopics", topics=[{"name": None, "topic_id": UNKNOWN_ID}], timeout_ms=30_000)
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_deleting_by_name_and_id_at_once(s: Script) -> None:
    topic = s.topic()
    s.call("DeleteTopics", topics=[{"name": topic, "topic_id": s.topic_id(topic)}], timeout_ms=30_000)
    s.says("INVALID_REQUEST")


@case
def test_deleting_by_neither_name_nor_id(s: Script) -> None:
    s.call("DeleteTopics", topics=[{"name": None}], timeout_ms=30_000)
    s.says("INVALID_REQUEST")


@case
def test_deleting_the_same_topic_twice_in_a_request(s: Script) -> None:
    topic = s.topic()
    s.call("DeleteTopics", topics=[{"name": topic}, {"name": topic}], timeout_ms=30_000)


@case
def test_metadata_of_a_topic_in_every_version(s: Script) -> None:
    topic = s.topic(partitions=2)
    for version in range(14):
        fields: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
        s.call("Metadata", version, topics=[{"name": topic}], **fields)
    s.says("NONE")


@case
def test_metadata_of_a_topic_by_its_id(s: Script) -> None:
    topics = [{"name": None, "topic_id": s.topic_id(s.topic())}]
    s.call("Metadata", topics=topics, allow_auto_topic_creation=False)
    s.says("NONE")


@case
def test_metadata_of_an_unknown_id(s: Script) -> None:
    s.call("Metadata", topics=[{"name": None, "topic_id": UNKNOWN_ID}], allow_auto_topic_creation=False)
    s.says("UNKNOWN_TOPIC_ID")


@case
def test_metadata_of_an_invalid_name(s: Script) -> None:
    s.call("Metadata", topics=[{"name": "a b"}], allow_auto_topic_creation=False)


@case
def test_metadata_of_an_invalid_name_with_auto_creation(s: Script) -> None:
    s.call("Metadata", topics=[{"name": "a b"}], allow_auto_topic_creation=True)


@case
def test_metadata_creates_a_topic_when_it_may(s: Script) -> None:
    name = s.new("auto")
    s.until(lambda answer: answer["topics"][0]["error_code"] == 0, "Metadata", topics=[{"name": name}])
    s.says("NONE")


@case
def test_metadata_without_topics_tells_of_brokers_only(s: Script) -> None:
    s.call("Metadata", topics=[])
    s.says("NONE")


@case
def test_metadata_with_authorized_operations(s: Script) -> None:
    topic = s.topic()
    s.call("Metadata", 10, topics=[{"name": topic}], include_cluster_authorized_operations=True)
    s.call("Metadata", topics=[{"name": topic}], include_topic_authorized_operations=True)
    s.says("NONE")


@case
def test_metadata_of_the_same_topic_twice(s: Script) -> None:
    topic = s.topic()
    s.call("Metadata", topics=[{"name": topic}, {"name": topic}])
    s.says("NONE")


@case
def test_partitions_are_added(s: Script) -> None:
    topic = s.topic()
    s.call("CreatePartitions", topics=[{"name": topic, "count": 3, "assignments": None}], timeout_ms=30_000)
    s.says("NONE")
    s.until(lambda answer: len(answer["topics"][0]["partitions"]) == 3, "Metadata", topics=[{"name": topic}])
    s.says("NONE")


@case
def test_partition_counts_that_are_no_growth(s: Script) -> None:
    topic = s.topic(partitions=2)
    for count in (2, 1, 0, -1):
        s.call("CreatePartitions", topics=[{"name": topic, "count": count, "assignments": None}], timeout_ms=30_000)
        s.says("INVALID_PARTITIONS")


@case
def test_partitions_of_an_unknown_topic(s: Script) -> None:
    s.call("CreatePartitions", topics=[{"name": s.new("absent"), "count": 3, "assignments": None}], timeout_ms=30_000)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_partitions_of_the_same_topic_twice_in_a_request(s: Script) -> None:
    topic = {"name": s.topic(), "count": 3, "assignments": None}
    s.call("CreatePartitions", topics=[topic, topic], timeout_ms=30_000)
    s.says("INVALID_REQUEST")


@case
def test_partitions_with_assignments(s: Script) -> None:
    topic = s.topic()
    for brokers in ([[1], [1]], [[1]], [[9], [9]], [[1, 1], [1, 1]], []):
        given = [{"broker_ids": ids} for ids in brokers]
        request = [{"name": topic, "count": 3, "assignments": given}]
        s.call("CreatePartitions", topics=request, timeout_ms=30_000, validate_only=True)


@case
def test_records_before_an_offset_are_deleted(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b", "c")
    delete_records(s, topic, 2)
    s.says("NONE")
    s.holds(low_watermark=2)


@case
def test_minus_1_deletes_up_to_the_high_watermark(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b")
    delete_records(s, topic, -1)
    s.holds(low_watermark=2)


@case
def test_deleting_records_below_the_start_changes_nothing(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a", "b", "c")
    delete_records(s, topic, 2)
    delete_records(s, topic, 1)
    s.holds(low_watermark=2)


@case
def test_deleting_records_beyond_the_end_is_out_of_range(s: Script) -> None:
    topic = s.topic()
    s.fill(topic, "a")
    delete_records(s, topic, 5)
    s.says("OFFSET_OUT_OF_RANGE")
    delete_records(s, topic, -2)
    s.says("OFFSET_OUT_OF_RANGE")


@case
def test_deleting_records_of_what_is_not_there(s: Script) -> None:
    delete_records(s, s.new("absent"), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    delete_records(s, s.topic(), 0, 7)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_the_cluster_is_described(s: Script) -> None:
    for version in range(3):
        s.call("DescribeCluster", version)
    s.says("NONE")
    s.call("DescribeCluster", include_cluster_authorized_operations=True)


@case
def test_describing_the_controllers_at_a_broker_is_refused(s: Script) -> None:
    s.call("DescribeCluster", endpoint_type=2)
    s.says("MISMATCHED_ENDPOINT_TYPE")
    s.call("DescribeCluster", endpoint_type=9)
    s.says("UNSUPPORTED_ENDPOINT_TYPE")
