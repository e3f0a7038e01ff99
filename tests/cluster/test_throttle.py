"""Copying replicas with a limit that changes while the brokers run."""

import pytest

from pylog_spark.client import Admin, Producer
from tests.harness.waiting import stays

pytestmark = pytest.mark.long  # the limit itself: broker_native/replica

RATE = "follower.replication.throttled.rate"
# Without the limit it takes a tenth of this.
LOOKED_AT_S = 2.0


def in_sync(cluster, topic, broker):
    return broker.broker_id in cluster.describe_topic(topic)[0].isr


def test_a_follower_that_is_behind_keeps_to_the_limit_until_it_is_taken_away(cluster, new_topic):
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, 1, 3, {"follower.replication.throttled.replicas": "*"})
        leader = cluster.wait_for_leader(new_topic, 0)
        behind = next(broker for broker in cluster.brokers if broker is not leader)
        admin.alter_configs("broker", str(behind.broker_id), {RATE: "1"})
    behind.terminate()
    # It has said so when it is gone; the broker that is asked applies it a moment later.
    cluster.wait_for(lambda: not in_sync(cluster, new_topic, behind), "the others know that it is gone")
    with Producer(cluster.bootstrap_servers, new_topic) as producer:
        for _ in range(400):
            producer.send(bytes(10_000))
    behind.start()
    stays(lambda: not in_sync(cluster, new_topic, behind), "it is behind", for_s=LOOKED_AT_S)
    with Admin(behind.bootstrap_servers) as admin:
        admin.alter_configs("broker", str(behind.broker_id), {RATE: None})
    cluster.wait_in_sync(new_topic)
