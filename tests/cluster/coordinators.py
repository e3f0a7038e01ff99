"""Who coordinates what, for tests: the leader of the partition of an internal topic that keeps a key."""

from pylog_spark.testing import LocalBroker, LocalCluster

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"


def partition_of(key: str, partitions: int) -> int:
    """Java's String.hashCode, as Kafka places keys (of ASCII)."""
    code = 0
    for letter in key:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return abs(code - (1 << 32) if code >= 1 << 31 else code) % partitions


def coordinator(cluster: LocalCluster, topic: str, key: str) -> LocalBroker:
    """The broker that keeps `key` now; waits until there is one."""
    partitions = cluster.wait_for(lambda: cluster.describe_topic(topic), f"the topic {topic}")
    return cluster.wait_for_leader(topic, partition_of(key, len(partitions)))
