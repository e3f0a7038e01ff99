"""A cluster whose brokers were all replaced by newer ones is raised to their level while it is used: share groups, which need level 2, are
refused before, by a sentence, and served behind it, without a broker being started again. It takes five seconds.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from kazoo.client import KazooClient

from pylog_spark.client import Admin
from pylog_spark.cluster import documents
from pylog_spark.cluster.features import FEATURE
from pylog_spark.testing import LocalBroker, LocalCluster, ZooKeeper
from tests.cluster.sharing import ask, configure, connect, shown
from tests.cluster.test_share_groups import PARTITIONS, Writer
from tests.harness.waiting import turns, until
from tests.harness.zookeeper import new_chroot
from tests.interop.shares import LibrdkafkaMember, ShareGroup
from tests.peers.tools import java

pytestmark = pytest.mark.long  # levels: tests/unit/cluster

_BEFORE, _WITH_SHARES = 1, 2
_WAIT_S = 30.0
TOOL = "org.apache.kafka.tools.FeatureCommand"
NOT_COORDINATOR, UNSUPPORTED_VERSION = 16, 35


@pytest.fixture
def old_cluster(worker_zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[LocalCluster]:
    """Three brokers of this version in a cluster that an older one began."""
    chroot = new_chroot()
    client = KazooClient(hosts=worker_zookeeper.address)
    client.start()
    try:
        level = documents.encode_number("level", _BEFORE)
        client.create(f"{chroot}/{documents.FEATURES}", level, makepath=True)
    finally:
        client.stop()
        client.close()
    with LocalCluster(tmp_path / "cluster", zookeeper=worker_zookeeper, chroot=chroot) as cluster:
        yield cluster


def level_and_shares(broker: LocalBroker) -> tuple[int, bool]:
    """The level that it knows, and whether it says that it keeps share groups."""
    with Admin(broker.bootstrap_servers) as admin:
        levels = {feature.feature: feature.level for feature in admin.features()}
    return levels[FEATURE], "share.version" in levels


@pytest.mark.peers
def test_share_groups_are_refused_until_the_level_is_raised_and_served_on_the_same_connections_then(
    old_cluster: LocalCluster, new_topic: str, tmp_path: Path
) -> None:
    cluster = old_cluster
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    everywhere = [connect(broker) for broker in cluster.brokers]
    joins = {"group_id": new_topic, "member_id": "m", "member_epoch": 0, "subscribed_topic_names": [new_topic]}

    def errors() -> list[int]:
        return [ask(broker, "ShareGroupHeartbeat", 1, **joins)["error_code"] for broker in everywhere]

    with ShareGroup(cluster.bootstrap_servers, new_topic, tmp_path) as group, Writer(cluster, new_topic) as writer:
        assert errors() == [UNSUPPORTED_VERSION] * 3
        sentence = ask(everywhere[0], "ShareGroupHeartbeat", 1, **joins)["error_message"]
        assert "need level 2 of pylog.version" in sentence
        with closing(LibrdkafkaMember(cluster.bootstrap_servers, group.name, new_topic)) as early:
            with pytest.raises(KafkaException) as refused:
                early.poll()
            assert "UNSUPPORTED_VERSION" in str(refused.value)
        with pytest.raises(RuntimeError, match="UnsupportedVersionException"):
            group.start().poll()
        assert [level_and_shares(broker) for broker in cluster.brokers] == [(_BEFORE, False)] * 3
        upgrade = ("upgrade", "--feature", f"{FEATURE}={_WITH_SHARES}")
        assert "was upgraded" in java(TOOL, "--bootstrap-server", cluster.bootstrap_servers, *upgrade)
        until(lambda: UNSUPPORTED_VERSION not in errors(), "all brokers know the level")
        assert [level_and_shares(broker) for broker in cluster.brokers] == [(_WITH_SHARES, True)] * 3
        # Two brokers say that the third coordinates it; that one lets the member in.
        until(lambda: sorted(errors()) == [0, NOT_COORDINATOR, NOT_COORDINATOR], "the member is in")
        configure(cluster.brokers[1], group.name, share_auto_offset_reset="earliest")
        for broker in cluster.brokers:
            begins = partial(shown, broker, group.name, "share.auto.offset.reset")
            until(lambda begins=begins: begins() == "earliest", "all know where the group begins")
        writer.stop()
        read, java_member = set[tuple[int, int]](), group.start()
        with closing(LibrdkafkaMember(cluster.bootstrap_servers, group.name, new_topic)) as member:
            for _ in turns(
                lambda: read >= writer.written, lambda: f"{len(writer.written)} are read: {len(read)}", _WAIT_S
            ):
                for reader in (member, java_member):
                    found = reader.poll(500)
                    reader.acknowledge("accept", *found)
                    assert set(reader.commit().values()) <= {"ok"}
                    read.update((record.partition, record.offset) for record in found)
        assert read == writer.written
    for connection in everywhere:
        connection.close()
