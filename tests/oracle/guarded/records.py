"""Requests about records and metadata, also of internal topics: see `test_authorization`."""

from tests.oracle.batches import batch
from tests.oracle.guarded.names import INTERNAL, UNKNOWN_ID, Names, fetched, produced
from tests.oracle.script import Script

#: What an internal topic holds depends on what else was asked before.
_CONTENTS = ("records", "high_watermark", "last_stable_offset", "log_start_offset", "offset", "low_watermark", "active_producers",
             "aborted_transactions", "end_offset")  # fmt: skip


def records(s: Script, n: Names) -> None:
    """Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers, by name and by id."""
    for topic in n.all():
        end = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}
        epoch = {"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}
        start = {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}
        for api, version, fields in (
            ("Produce", 9, produced(topic, batch("x"))),
            ("Fetch", 12, fetched(topic)),
            ("ListOffsets", 7, {"topics": [end]}),
            ("OffsetForLeaderEpoch", 4, {"replica_id": -1, "topics": [epoch]}),
            ("DeleteRecords", 2, {"timeout_ms": 30_000, "topics": [start]}),
            ("DescribeProducers", 0, {"topics": [{"name": topic, "partition_indexes": [0]}]}),
        ):
            s.call(api, version, **fields)
            if topic in INTERNAL:
                s.without(*_CONTENTS)
    for topic_id in (*n.ids.values(), UNKNOWN_ID):
        s.call("Fetch", 13, **fetched(topic_id, "topic_id"))
        s.call("Produce", 13, **produced(topic_id, batch("x"), "topic_id"))
    for transactional_id, topic in ((n.mine, n.mine), (n.mine, n.other), (n.other, n.mine)):
        s.call("Produce", 11, **n.in_transaction(transactional_id, topic))


def metadata(s: Script, n: Names) -> None:
    """Metadata by name, by id and of all, with creation; DescribeTopicPartitions, DescribeCluster, FindCoordinator, DescribeQuorum."""
    operations = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    for creates in (False, True):
        topics = [{"name": name} for name in (*n.both(), *INTERNAL)]
        s.call("Metadata", 9, allow_auto_topic_creation=creates, topics=topics, **operations)
        # Who may create it gets another error: the name is none.
        s.call("Metadata", 12, allow_auto_topic_creation=creates, topics=[{"name": n.mine + " "}])
    s.call("Metadata", 12, topics=[{"name": n.missing}], allow_auto_topic_creation=False)
    s.call("Metadata", 12, topics=[{"name": None, "topic_id": one} for one in (*n.ids.values(), UNKNOWN_ID)])
    s.listed("name", "Metadata", 12, topics=None)
    s.call("DescribeTopicPartitions", 0, topics=[{"name": name} for name in n.all()])
    s.listed("name", "DescribeTopicPartitions", 0, topics=[])
    s.call("DescribeCluster", 0, include_cluster_authorized_operations=True)
    s.without("brokers")
    for name in n.both():
        for key_type in (0, 1):
            s.call("FindCoordinator", 4, key_type=key_type, coordinator_keys=[name, n.missing])
        s.call("FindCoordinator", 6, key_type=2, coordinator_keys=[n.share_key(name, name)])
        s.without("key")
        s.call("FindCoordinator", 3, key=name)
    s.call("DescribeQuorum", 1, topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}])
    s.without("topics")
