"""Compatibility traps that others hit, each a test with its source. Those of single requests lie in `broker/tests` of the
native half and in `test_admin.py`; here is what only whole answers of a running broker show."""

import json
import uuid

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from pylog_spark._native import RawConnection

TIMEOUT_S = 60
# Versions that are advertised only so that librdkafka compresses (KAFKA-18659); who uses them is turned away.
NOT_SERVED = {("Produce", 0), ("Produce", 1), ("Produce", 2)}
NAMES = {
    0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator",
    11: "JoinGroup", 12: "Heartbeat", 13: "LeaveGroup", 14: "SyncGroup", 15: "DescribeGroups", 16: "ListGroups",
    17: "SaslHandshake", 18: "ApiVersions", 19: "CreateTopics", 20: "DeleteTopics", 21: "DeleteRecords", 22: "InitProducerId",
    23: "OffsetForLeaderEpoch", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 27: "WriteTxnMarkers",
    28: "TxnOffsetCommit", 29: "DescribeAcls", 30: "CreateAcls", 31: "DeleteAcls", 32: "DescribeConfigs", 33: "AlterConfigs", 34: "AlterReplicaLogDirs", 35: "DescribeLogDirs", 36: "SaslAuthenticate", 37: "CreatePartitions",
    42: "DeleteGroups", 43: "ElectLeaders", 44: "IncrementalAlterConfigs", 45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments", 47: "OffsetDelete",
    48: "DescribeClientQuotas", 49: "AlterClientQuotas", 50: "DescribeUserScramCredentials", 51: "AlterUserScramCredentials", 55: "DescribeQuorum", 57: "UpdateFeatures", 60: "DescribeCluster", 61: "DescribeProducers",
    64: "UnregisterBroker", 65: "DescribeTransactions", 66: "ListTransactions", 68: "ConsumerGroupHeartbeat", 69: "ConsumerGroupDescribe",
    74: "ListConfigResources", 75: "DescribeTopicPartitions", 76: "ShareGroupHeartbeat", 77: "ShareGroupDescribe", 78: "ShareFetch",
    79: "ShareAcknowledge", 83: "InitializeShareGroupState", 84: "ReadShareGroupState", 85: "WriteShareGroupState",
    86: "DeleteShareGroupState", 87: "ReadShareGroupStateSummary", 90: "DescribeShareGroupOffsets", 91: "AlterShareGroupOffsets", 92: "DeleteShareGroupOffsets",
}  # fmt: skip
# Requests that would wait, or that Kafka answers with nothing.
HARMLESS = {"Produce": {"acks": 1}}


@pytest.fixture
def raw(shared):
    host, _, port = shared.bootstrap_servers.rpartition(":")
    connection = RawConnection(host, int(port))
    yield connection
    connection.close()


@pytest.fixture
def admin(shared):
    return AdminClient({"bootstrap.servers": shared.bootstrap_servers})


def ask(raw, name, version, **fields):
    return json.loads(raw.call(name, version, json.dumps(fields)))


def advertised(raw):
    """{name: (lowest, highest)}."""
    keys = ask(raw, "ApiVersions", 4)["api_keys"]
    return {NAMES[key["api_key"]]: (key["min_version"], key["max_version"]) for key in keys}


def test_every_version_between_the_advertised_ends_is_answered_since_sarama_picks_by_release(raw):
    # redpanda-data/redpanda#17581: a version that is advertised and not served ends in EOF.
    asked = 0
    for name, (low, high) in advertised(raw).items():
        for version in range(low, high + 1):
            if (name, version) not in NOT_SERVED:
                ask(raw, name, version, **HARMLESS.get(name, {}))
                asked += 1
    assert asked > 80


def test_young_clients_that_start_high_find_their_versions(raw):
    # platformatic/kafka#51
    shown = advertised(raw)
    wanted = {"Produce": 9, "Fetch": 15, "Metadata": 12, "ListOffsets": 8, "FindCoordinator": 4}
    assert {name: shown[name][1] >= version for name, version in wanted.items()} == dict.fromkeys(wanted, True)


def test_aiokafka_finds_the_low_versions_that_it_speaks(raw):
    # aio-libs/aiokafka#1085, aiokafka 0.14: no flexible version on the data path.
    shown = advertised(raw)
    spoken = {"Produce": (0, 8), "Fetch": (4, 11), "ListOffsets": (1, 5), "Metadata": (0, 5), "FindCoordinator": (0, 1)}
    for name, (low, high) in spoken.items():
        assert shown[name][0] <= low, name
        assert shown[name][1] >= high, name


def test_kafbat_lets_configs_be_edited_since_metadata_version_and_the_protocol_version_are_shown(raw, admin):
    # kafbat ReactiveAdminClient
    finalized = {
        feature["name"]: feature["max_version_level"] for feature in ask(raw, "ApiVersions", 4)["finalized_features"]
    }
    assert finalized["metadata.version"] >= 1
    resource = ConfigResource(ResourceType.BROKER, "1")
    shown = admin.describe_configs([resource])[resource].result(TIMEOUT_S)["inter.broker.protocol.version"].value
    assert tuple(int(word) for word in shown.split("-")[0].split(".")) >= (2, 3)


def test_connects_internal_topics_with_three_replicas_are_refused_with_the_number_of_brokers(admin):
    # apache/kafka#8828, #2984: Connect's default is 3; the sentence must lead to the setting.
    name = f"connect-configs-{uuid.uuid4()}"
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(name, 1, 3)])[name].result(TIMEOUT_S)
    assert refused.value.args[0].name() == "INVALID_REPLICATION_FACTOR"
    assert "only 1 broker(s) are registered" in refused.value.args[0].str()


def test_connects_internal_topics_read_back_as_compacted(admin):
    # apache/kafka#8828: Connect ends itself when cleanup.policy is anything else.
    name = f"connect-offsets-{uuid.uuid4()}"
    wanted = NewTopic(name, 25, -1, config={"cleanup.policy": "compact"})
    admin.create_topics([wanted])[name].result(TIMEOUT_S)
    resource = ConfigResource(ResourceType.TOPIC, name)
    entry = admin.describe_configs([resource])[resource].result(TIMEOUT_S)["cleanup.policy"]
    assert (entry.value, entry.source) == ("compact", 1)


def test_log_dirs_tell_the_room_on_the_disk(raw, shared):
    # redpanda-data/redpanda#18279: consoles compute the fill level from version 4's fields.
    (found,) = ask(raw, "DescribeLogDirs", 4, topics=None)["results"]
    assert found["log_dir"] == str(shared.data_dir)
    assert found["total_bytes"] > found["usable_bytes"] > 0
