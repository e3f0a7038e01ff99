"""Brokers that share a ZooKeeper: which ones live and lead, and which one is the controller, when they stop, die, stand still and come back."""

import json
import re

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from pylog_spark._native import Client, RawConnection
from pylog_spark.cli.cluster import cluster as cluster_verbs
from pylog_spark.client import Admin, LogError
from pylog_spark.cluster.model import topic_id_uuid
from pylog_spark.testing import LocalBroker, LocalCluster, ProcessError
from tests.harness.ports import nowhere
from tests.harness.watch import stored_partitions
from tests.harness.zookeeper import new_chroot
from tests.oracle.batches import batch
from tests.peers.tools import java

COORDINATOR_NOT_AVAILABLE = 15
NOT_LEADER_OR_FOLLOWER = 6


def leaders(cluster, topic):
    return {partition.partition: partition.leader for partition in cluster.describe_topic(topic)}


def create(broker, name, partitions=6, factor=3):
    with Admin(broker.bootstrap_servers) as admin:
        return admin.create_topic(name, partitions, factor)


def create_everywhere(cluster, name, partitions=6, factor=3):
    """Create a topic and wait until every broker knows it."""
    create(cluster.brokers[0], name, partitions, factor)
    for broker in cluster.brokers:
        with Admin(broker.bootstrap_servers) as admin:
            cluster.wait_for(lambda admin=admin: not admin.topics([name])[0].error, f"{name} at every broker")


def test_every_broker_of_a_started_cluster_knows_all_of_them_and_the_controller(cluster):
    for broker in cluster.brokers:
        client = Client({"bootstrap.servers": broker.bootstrap_servers})
        described = client.describe_cluster()
        client.close()
        assert sorted(node["node_id"] for node in described["brokers"]) == [1, 2, 3]
        assert described["controller_id"] in (1, 2, 3)
        with Admin(broker.bootstrap_servers) as admin:
            (described,) = admin.configs("broker", [str(broker.broker_id)])
        (shown,) = [config.value for config in described.configs if config.name == "advertised.listeners"]
        assert shown == f"PLAINTEXT://{broker.bootstrap_servers}"


@pytest.mark.long  # every test of tests/cluster makes topics
def test_a_topic_created_at_one_broker_is_served_by_all_and_its_deletion_too(cluster, new_topic):
    create(cluster.brokers[0], new_topic)
    for broker in cluster.brokers:
        with Admin(broker.bootstrap_servers) as admin:
            cluster.wait_for(lambda admin=admin: not admin.topics([new_topic])[0].error, "the topic at every broker")
    assert set(leaders(cluster, new_topic).values()) == {1, 2, 3}
    with Admin(cluster.brokers[1].bootstrap_servers) as admin:
        assert admin.delete_topics([new_topic])[0].error is None
    for broker in cluster.brokers:
        with Admin(broker.bootstrap_servers) as admin:
            cluster.wait_for(lambda admin=admin: admin.topics([new_topic])[0].error, "the topic gone from every broker")


@pytest.mark.long  # test_failover.py
def test_a_killed_broker_leads_nothing_and_comes_back_at_once(cluster, new_topic):
    create_everywhere(cluster, new_topic)
    dead = cluster.brokers[2]
    before = dead.logs()
    dead.kill()
    cluster.wait_for(lambda: {1, 2}.issuperset(leaders(cluster, new_topic).values()), "other leaders")
    cluster.wait_for(
        lambda: all(3 not in partition.isr for partition in cluster.describe_topic(new_topic)), "other ISRs"
    )
    dead.start()
    for _ in range(9):
        if dead.start_seconds >= 2.0:
            # The machine may have been busy with something else.
            dead.restart()
    assert dead.start_seconds < 2.0
    assert "Registered again" not in dead.logs().removeprefix(before)


def test_the_next_controller_takes_over_when_one_dies(cluster, new_topic):
    create_everywhere(cluster, new_topic)
    first = cluster.wait_for(cluster.controller, "a controller")
    first.kill()

    def another():
        now = cluster.controller()
        return now if now is not first else None

    assert cluster.wait_for(another, "another controller") is not first
    others = {1, 2, 3} - {first.broker_id}
    cluster.wait_for(lambda: others.issuperset(leaders(cluster, new_topic).values()), "its partitions led by others")


def test_a_clean_stop_moves_leadership_first(cluster, new_topic):
    create_everywhere(cluster, new_topic)
    leaving = cluster.brokers[1]
    assert leaving.terminate() == 0
    # That holds as soon as the process has ended, without waiting for its session to end. Other brokers apply it a moment later.
    for partition in stored_partitions(cluster.zookeeper_connect, new_topic):
        assert partition.leader in (1, 3)
        assert 2 not in partition.isr
    cluster.wait_for(lambda: {1, 3}.issuperset(leaders(cluster, new_topic).values()), "other leaders")


@pytest.mark.long  # test_failover.py, with writes
def test_a_broker_that_stood_still_longer_than_its_session_registers_again_and_does_not_lead(cluster, new_topic):
    create_everywhere(cluster, new_topic, partitions=1)
    old = cluster.wait_for_leader(new_topic, 0)
    before = old.logs()
    old.pause()
    new = cluster.wait_for_leader(new_topic, 0, other_than=old)
    old.resume()
    cluster.wait_for(lambda: "Registered again" in old.logs().removeprefix(before), "registered again")
    with Admin(old.bootstrap_servers) as admin:
        cluster.wait_for(
            lambda: admin.topic(new_topic).partitions[0].leader == new.broker_id,
            "the old leader knows the new one",
        )


def test_a_leader_that_stood_still_longer_than_its_session_takes_nothing_any_more(cluster, new_topic):
    create_everywhere(cluster, new_topic, partitions=1)
    old = cluster.wait_for_leader(new_topic, 0)
    topic_id = admin_topic_id(old, new_topic)
    connection = RawConnection(old.host, old.port)
    append = {
        "acks": 1,
        "timeout_ms": 5_000,
        "topic_data": [{"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch("late")}]}],
    }
    assert error_of(connection.call("Produce", 13, json.dumps(append))) == 0
    old.pause()
    cluster.wait_for_leader(new_topic, 0, other_than=old)
    # It lies in the socket when the broker goes on, before that hears of anything.
    connection.send("Produce", 13, json.dumps(append))
    old.resume()
    assert error_of(connection.receive()) == NOT_LEADER_OR_FOLLOWER
    connection.close()


def admin_topic_id(broker, name):
    with Admin(broker.bootstrap_servers) as admin:
        return str(topic_id_uuid(admin.topic(name).topic_id))


def error_of(answer):
    return json.loads(answer)["responses"][0]["partition_responses"][0]["error_code"]


def test_all_brokers_may_die_at_once_and_come_back(cluster, new_topic):
    create_everywhere(cluster, new_topic)
    before = {partition.partition: partition.replicas for partition in cluster.describe_topic(new_topic)}
    for broker in cluster.brokers:
        broker.kill()
    for broker in cluster.brokers:
        broker.start()
    cluster.wait_for(lambda: -1 not in leaders(cluster, new_topic).values(), "a leader of every partition")
    assert {partition.partition: partition.replicas for partition in cluster.describe_topic(new_topic)} == before


@pytest.mark.long  # tests/unit/cluster
def test_a_topic_of_three_replicas_is_made_while_a_broker_is_dead_and_it_joins(cluster, new_topic):
    dead = cluster.brokers[2]
    dead.kill()
    with Admin(cluster.brokers[0].bootstrap_servers) as admin:
        wait_for_members(cluster, living=[1, 2], dead=[3])
        admin.create_topic(new_topic, 2, 3, {"min.insync.replicas": "2"})
        admin.create_partitions(new_topic, 3)
    for broker in cluster.brokers[:2]:
        with Admin(broker.bootstrap_servers) as admin:
            cluster.wait_for(
                lambda admin=admin: len(admin.topics([new_topic])[0].partitions) == 3,
                "three partitions at both brokers",
            )
    described = cluster.describe_topic(new_topic)
    assert [(set(partition.replicas), set(partition.isr)) for partition in described] == [({1, 2, 3}, {1, 2})] * 3
    assert {partition.leader for partition in described} == {1, 2}
    living = ",".join(broker.bootstrap_servers for broker in cluster.brokers[:2])
    # Made because it is written to, and as large: the default is three replicas.
    made = f"{new_topic}-written"
    for topic in (new_topic, made):
        assert write(living, topic, 0, range(100)) == 100
    # The broker that is asked may not know it yet.
    assert {len(partition.replicas) for partition in cluster.wait_for(lambda: cluster.describe_topic(made), made)} == {
        3
    }
    dead.start()
    for topic in (new_topic, made):
        cluster.wait_in_sync(topic)
        assert write(cluster.bootstrap_servers, topic, 0, range(100, 200)) == 100
        assert read(cluster.bootstrap_servers, topic, 0) == list(range(200))


@pytest.mark.long  # tests/cli/test_cluster.py
@pytest.mark.peers
def test_a_dead_broker_is_forgotten_by_kafkas_tool_until_it_starts_again(cluster, new_topic):
    dead = cluster.brokers[2]
    dead.kill()
    first = cluster.brokers[0].bootstrap_servers
    with Admin(first) as admin:
        wait_for_members(cluster, living=[1, 2], dead=[3])
        assert [line for line in cluster_tool("list-endpoints", first).splitlines() if line.startswith("3 ")] == []
        shown = cluster_tool("list-endpoints", first, "--include-fenced-brokers").splitlines()
        (row,) = [line.split() for line in shown if line.startswith("3 ")]
        assert "fenced" in row
        shown = CliRunner().invoke(cluster_verbs, ["describe", "--bootstrap-server", first])
        assert f"Broker 3, last at {dead.bootstrap_servers}, is dead; it has " in shown.output
        assert "no longer registered" in cluster_tool("unregister", first, "--id", "3")
        wait_for_members(cluster, living=[1, 2], dead=[])
        with pytest.raises(LogError, match=r"only 2 broker\(s\) are registered"):
            admin.create_topic(new_topic, 1, 3)
        with pytest.raises(LogError, match="Broker 3 is not registered"):
            admin.unregister_broker(3)
        with pytest.raises(LogError, match="Broker 2 lives"):
            admin.unregister_broker(2)
        dead.start()
        wait_for_members(cluster, living=[1, 2, 3], dead=[])
        assert admin.create_topic(new_topic, 1, 3).replication_factor == 3


def wait_for_members(cluster, living, dead):
    """Until every broker that runs knows who lives and who is dead: any of them may be asked, and one of them decides."""

    def known():
        for broker in cluster.brokers:
            if broker.running:
                with Admin(broker.bootstrap_servers) as admin:
                    here = [
                        sorted(node.node_id for node in some)
                        for some in (admin.cluster().brokers, admin.dead_brokers())
                    ]
                if here != [living, dead]:
                    return False
        return True

    cluster.wait_for(known, f"all know that {living} live and {dead} are dead")


def cluster_tool(verb, servers, *arguments):
    """What kafka-cluster.sh prints."""
    return java("org.apache.kafka.tools.ClusterTool", verb, "--bootstrap-server", servers, *arguments)


def write(servers, topic, partition, numbers):
    """Write numbers, acknowledged by all that are in sync; how many were."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "message.timeout.ms": 30_000})
    errors = []
    for number in numbers:
        producer.produce(topic, str(number), partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(40) == 0
    return errors.count(None)


def read(servers, topic, partition):
    """The numbers of a partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    numbers = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        numbers.append(int(message.value()))
    consumer.close()
    return numbers


def test_a_cluster_outlives_its_zookeeper_and_starts_again_from_its_directories(tmp_path):
    with LocalCluster(tmp_path, brokers=2) as cluster:
        create_everywhere(cluster, "t", factor=2)
        cluster.zookeeper.kill()
        cluster.zookeeper.start()

        def created():
            try:
                return create(cluster.brokers[0], "u", factor=2)
            except LogError as error:
                # Of an attempt before this one, whose answer did not come.
                return error.kind == "TOPIC_ALREADY_EXISTS"

        cluster.wait_for(created, "topics are created again")
        servers = cluster.bootstrap_servers
    with LocalCluster(tmp_path, brokers=2) as again:
        assert again.bootstrap_servers == servers
        assert len(again.describe_topic("t")) == len(again.describe_topic("u")) == 6


@pytest.mark.long  # tests/unit/cluster
def test_a_broker_id_that_is_alive_is_refused(cluster, tmp_path):
    twin = LocalBroker(
        tmp_path / "twin", node_id=1, zookeeper_connect=cluster.zookeeper_connect, zookeeper_session_timeout_ms=2000,
    )  # fmt: skip
    with pytest.raises(ProcessError, match=r"Broker id 1 is taken: a broker with it lives at 127\.0\.0\.1"):
        twin.start()
    twin.close()


def test_without_zookeeper_a_broker_says_what_is_missing(tmp_path):
    alone = LocalBroker(tmp_path, zookeeper_connect=f"{nowhere()}/pylog", zookeeper_connection_timeout_ms=300)
    with pytest.raises(ProcessError, match=re.escape(f"No ZooKeeper answers at {nowhere()}/pylog")):
        alone.start()
    alone.close()


@pytest.mark.long  # tests/unit/broker
def test_groups_have_no_coordinator_until_their_topic_can_have_all_its_replicas(zookeeper, tmp_path):
    settings = {"offsets_topic_replication_factor": 2, "offsets_topic_num_partitions": 2}
    place = {"zookeeper": zookeeper, "chroot": new_chroot()}
    with LocalCluster(tmp_path / "first", brokers=1, **place, **settings) as cluster:
        first = cluster.brokers[0]
        connection = RawConnection(first.host, first.port)

        def coordinator():
            asked = json.dumps({"key_type": 0, "coordinator_keys": ["g"]})
            return json.loads(connection.call("FindCoordinator", 4, asked))["coordinators"][0]

        assert coordinator()["error_code"] == COORDINATOR_NOT_AVAILABLE
        shared = {"zookeeper_connect": cluster.zookeeper_connect, "zookeeper_session_timeout_ms": 2_000}
        with LocalBroker(tmp_path / "second", node_id=2, **shared, **settings):
            cluster.wait_for(lambda: coordinator()["error_code"] == 0, "a coordinator")
            replicas = [sorted(partition.replicas) for partition in cluster.describe_topic("__consumer_offsets")]
        assert replicas == [[1, 2], [1, 2]]
        connection.close()
