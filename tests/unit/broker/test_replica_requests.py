"""Requests about replicas where there is one broker: what can be done is done, the rest is refused with Kafka's codes."""

import json

import pytest

from pylog_spark.broker import requests
from pylog_spark.broker.config import broker_config
from pylog_spark.broker.registry import TopicRegistry
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.store.file import FileStore


class Native:
    """Takes all topics."""

    def apply_topics(self, topics_json):
        json.loads(topics_json)

    def apply_security(self, security_json):
        self.security = json.loads(security_json)

    def set_cleaner_backoff(self, backoff_ms):
        self.cleaner_backoff_ms = backoff_ms

    def remove_topic(self, name):
        raise AssertionError(name)


@pytest.fixture
def ask(tmp_path):
    """Ask a controller with topic `events` of two partitions on broker 1: `ask(kind, request)`."""
    registry = TopicRegistry(FileStore(tmp_path), Native(), broker_config([("node.id", "1")]))
    topic = {"name": "events", "num_partitions": 2, "replication_factor": 1, "configs": [], "assignments": []}
    created = requests.create_topics(registry, {"topics": [topic], "validate_only": False})
    assert created["topics"][0]["error_code"] == 0

    def asked(kind, **request):
        answer = requests.HANDLERS[kind](registry, request)
        json.dumps(answer)
        return answer

    return asked


def codes(partitions):
    return [ErrorCode(partition["error_code"]) for partition in partitions]


def test_no_election_is_needed_where_the_preferred_leader_leads(ask):
    named = [{"topic": "events", "partitions": [0, 7]}, {"topic": "none", "partitions": [0]}]
    first, second = ask("elect_leaders", election_type=0, topic_partitions=named)["replica_election_results"]
    assert codes(first["partition_result"]) == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes(second["partition_result"]) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ask("elect_leaders", election_type=0, topic_partitions=None)["replica_election_results"] == []


def test_an_unknown_kind_of_election_is_an_invalid_request(ask):
    assert ask("elect_leaders", election_type=2, topic_partitions=None)["error_code"] == ErrorCode.INVALID_REQUEST


def moves(ask, *partitions, **more):
    topics = [{"name": "events", "partitions": [{"partition_index": i, "replicas": to} for i, to in partitions]}]
    (answer,) = ask("alter_partition_reassignments", topics=topics, **more)["responses"]
    return codes(answer["partitions"])


def test_a_move_to_where_the_replica_is_is_done_and_one_to_an_unknown_broker_is_refused(ask):
    assert moves(ask, (0, [1]), (1, [2]), (5, [1])) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert moves(ask, (0, None)) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert ask("list_partition_reassignments", topics=None)["topics"] == []


def test_the_number_of_replicas_stays_where_it_may_not_change(ask):
    refused = moves(ask, (0, [1, 2]), allow_replication_factor_change=False)
    assert refused == [ErrorCode.INVALID_REPLICATION_FACTOR]


def test_a_topic_that_is_named_many_times_is_looked_at_once(ask):
    named = [{"topic": "events", "partitions": [0, 0]}, {"topic": "events", "partitions": [1, 0]}] * 1_000
    (only,) = ask("elect_leaders", election_type=0, topic_partitions=named)["replica_election_results"]
    assert [partition["partition_id"] for partition in only["partition_result"]] == [0, 1]
    wanted = [{"partition_index": 0, "replicas": [9]}], [{"partition_index": 0, "replicas": [1]}]
    topics = [{"name": "events", "partitions": partitions} for partitions in wanted]
    (moved,) = ask("alter_partition_reassignments", topics=topics)["responses"]
    assert codes(moved["partitions"]) == [ErrorCode.NONE], "the last word counts"
