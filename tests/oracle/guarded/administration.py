"""Requests of administrators: see `test_authorization`. What they would change they only check, but for topics to delete."""

from typing import Any

from tests.oracle.guarded.names import INTERNAL, SHARERS, UNKNOWN_ID, Names
from tests.oracle.script import Answer, Script

_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32
_ANY, _LITERAL, _EXACT = 1, 3, 0
_NO_SETTING = "there is none of this name"
_QUICK = {"timeout_ms": 30_000, "validate_only": True}
_STATES = "__share_group_state"
_METADATA = "__cluster_metadata"


def topics(s: Script, n: Names) -> None:
    """New topics, and new partitions."""
    there = (*n.both(), *INTERNAL, _STATES)
    for names in (
        [n.mine + "-new"],
        [n.other + "-new"],
        [*there, *(name + "-new" for name in there), n.missing, _METADATA],
        [_METADATA],
    ):
        s.call("CreateTopics", 7, **_QUICK, topics=[_new(name) for name in names])
        s.without("configs")
    s.call("CreateTopics", 4, **_QUICK, topics=[_new(n.mine + "-new"), _new(n.other + "-new")])
    for names in ([n.mine], [n.other], [*there, n.missing]):
        s.call("CreatePartitions", 3, **_QUICK, topics=[{"name": name, "count": 7} for name in names])


def _new(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1}


def configs(s: Script, n: Names) -> None:
    """DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""
    named = [
        *((_TOPIC, name) for name in n.all()),
        *((_GROUP, name + end) for name in n.both() for end in ("", SHARERS)),
        (_BROKER, "1"), (_LOGGER, "1"),
    ]  # fmt: skip
    for kind, name in named:
        resource = {"resource_type": kind, "resource_name": name}
        s.call("DescribeConfigs", 4, resources=[{**resource, "configuration_keys": [_NO_SETTING]}])
        s.call("IncrementalAlterConfigs", 1, validate_only=True, resources=[resource])
        if kind != _LOGGER:
            s.call("AlterConfigs", 2, validate_only=True, resources=[resource])
    s.call("ListConfigResources", 1, resource_types=[_METRICS])


def cluster(s: Script, n: Names) -> None:
    """Leaders, replicas, features, brokers."""
    asked = (*n.both(), n.missing)
    listed = [{"name": name, "partition_indexes": [0, 1]} for name in asked]
    # No move is under way that could be ended.
    ended = [{"name": name, "partitions": [{"partition_index": 0, "replicas": None}]} for name in asked]
    elected = [{"topic": name, "partitions": [0]} for name in asked]
    for topics in ([], listed):
        s.call("ListPartitionReassignments", 0, timeout_ms=30_000, topics=topics)
    for topics in ([], ended):
        s.call("AlterPartitionReassignments", 0, timeout_ms=30_000, topics=topics)
    for topics in ([], elected):
        for version in (0, 2):
            s.call("ElectLeaders", version, timeout_ms=30_000, topic_partitions=topics)
    s.call("UpdateFeatures", 1, **_QUICK, feature_updates=[])
    s.call("DescribeLogDirs", 4, topics=[])
    s.without("results")
    moved = [{"path": "/nowhere", "topics": [{"name": name, "partitions": [0]} for name in (*n.both(), n.missing)]}]
    s.call("AlterReplicaLogDirs", 2, dirs=moved)
    s.call("UnregisterBroker", 0, broker_id=99)


def security(s: Script, n: Names) -> None:
    """ACLs, users and quotas that there are not."""
    nobody = n.missing
    named = {"resource_type_filter": _LITERAL, "resource_name_filter": nobody, "pattern_type_filter": _LITERAL}
    acls = {**named, "operation": _ANY, "permission_type": _ANY}
    s.call("DescribeAcls", 3, **acls)
    s.call("DeleteAcls", 3, filters=[acls])
    # A principal without a type is none.
    no_acl = {
        "resource_type": 2,
        "resource_name": n.mine,
        "principal": "alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    s.call("CreateAcls", 3, creations=[no_acl])
    for times in (1, 2):
        s.call("DescribeUserScramCredentials", 0, users=[{"name": nobody}] * times)
    s.call("AlterUserScramCredentials", 0, deletions=[{"name": nobody, "mechanism": 1}], upsertions=[])
    s.call("DescribeClientQuotas", 1, components=[{"entity_type": "user", "match_type": _EXACT, "match": nobody}])
    limited = {
        "entity": [{"entity_type": "user", "entity_name": nobody}],
        "ops": [{"key": "producer_byte_rate", "value": 1.0}],
    }
    s.call("AlterClientQuotas", 1, entries=[limited], validate_only=True)


def deletion(s: Script, n: Names) -> None:
    """Topics that are not there, one after the other, and two that are; these are gone when it returns, if they may be deleted."""
    by_name, by_id = n.to_delete()
    missing, unknown = {"name": n.missing}, {"name": None, "topic_id": UNKNOWN_ID}
    s.call("DeleteTopics", 5, timeout_ms=30_000, topic_names=[n.missing])
    s.call("DeleteTopics", 6, timeout_ms=30_000, topics=[missing])
    there = [{"name": by_name}, {"name": None, "topic_id": n.deleted[by_id]}]
    answer = s.call("DeleteTopics", 6, timeout_ms=30_000, topics=[*there, missing, unknown])["responses"]
    done = {topic["topic_id"] for topic in answer if not topic["error_code"]}
    if gone := [{"name": name} for name in (by_name, by_id) if n.deleted[name] in done]:
        acting, s.main = s.main, n.admin
        s.until(_are_gone, "Metadata", 12, topics=gone, allow_auto_topic_creation=False)
        s.transcript.pop()
        s.main = acting


def _are_gone(answer: Answer) -> bool:
    return all(topic["error_code"] for topic in answer["topics"])
