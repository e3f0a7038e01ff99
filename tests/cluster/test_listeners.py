"""Clusters whose brokers have several listeners: clients get the addresses of theirs, brokers reach each other over another, with TLS."""

import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark.testing import LocalCluster
from tests.broker.test_listeners import coordinator, endpoint, metadata
from tests.harness.waiting import during, until
from tests.harness.zookeeper import new_chroot

INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"


def cluster_of(folder, zookeeper, **settings):
    return LocalCluster(folder, zookeeper=zookeeper, chroot=new_chroot(), **settings)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, worker_zookeeper):
    """Two plain listeners each, brokers use the second one."""
    listeners = {OUTSIDE: "PLAINTEXT", INSIDE: "PLAINTEXT"}
    with cluster_of(
        tmp_path_factory.mktemp("plain"), worker_zookeeper, listeners=listeners, inter_broker_listener_name=INSIDE
    ) as running:
        yield running


@pytest.fixture(scope="module")
def secure(tmp_path_factory, worker_zookeeper):
    """TLS between brokers, which show certificates; clients come without."""
    listeners = {OUTSIDE: "PLAINTEXT", INSIDE: "SSL"}
    with cluster_of(
        tmp_path_factory.mktemp("secure"),
        worker_zookeeper,
        tls=True,
        listeners=listeners,
        inter_broker_listener_name=INSIDE,
    ) as running:
        yield running


def written_and_read(settings, topic, count=200):
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
    producer = Producer({**settings, "acks": "all"})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    assert producer.flush(30) == 0
    consumer = Consumer({**settings, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = set()

    def all_read():
        values.update(message.value() for message in consumer.consume(count, 0.5) if message.error() is None)
        return len(values) == count

    until(all_read, f"{count} records of {topic} are read", deadline_s=60, pause_s=0)
    consumer.close()


@pytest.mark.parametrize("listener", [INSIDE, OUTSIDE])
def test_each_listener_names_all_brokers_by_its_own_addresses(plain, listener):
    addresses = [broker.address_of(listener) for broker in plain.brokers]
    for address in addresses:
        assert sorted(metadata(address)) == sorted(map(endpoint, addresses))
        assert coordinator(address) in map(endpoint, addresses)


@pytest.mark.parametrize("listener", [INSIDE, OUTSIDE])
def test_clients_of_each_listener_write_and_read(plain, listener):
    servers = ",".join(broker.address_of(listener) for broker in plain.brokers)
    written_and_read({"bootstrap.servers": servers}, f"t-{listener}")


def test_brokers_replicate_over_tls_and_groups_and_failover_work(secure):
    settings = {"bootstrap.servers": secure.bootstrap_servers}
    written_and_read(settings, "t")
    secure.wait_in_sync("t")
    leader = secure.leader("t", 0)
    leader.kill()
    secure.wait_for_leader("t", 0, other_than=leader)
    consumer = Consumer({**settings, "group.id": "other", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    assert consumer.consume(1, 30)[0].value() == b"0"
    consumer.close()
    leader.start()
    secure.wait_in_sync("t")


def formatted(zookeeper, chroot, name, password):
    """The user that brokers log in as, made before the first of them runs."""
    command = [sys.executable, "-m", "pylog_spark", "broker", "format", "--zookeeper", zookeeper.address + chroot]
    added = f"SCRAM-SHA-512=[name={name},password={password}]"
    subprocess.run([*command, "--add-scram", added], check=True, timeout=60)


@pytest.fixture(scope="module")
def logged_in(tmp_path_factory, worker_zookeeper):
    """Brokers log in at each other over TLS, for sessions that end soon; clients come without."""
    chroot, folder = new_chroot(), tmp_path_factory.mktemp("logged-in")
    formatted(worker_zookeeper, chroot, "broker", "swordfish")
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="swordfish";'
    settings = {
        "inter.broker.listener.name": INSIDE,
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.inside.scram-sha-512.sasl.jaas.config": jaas,
        "listener.name.inside.connections.max.reauth.ms": 3_000,
        "ssl.client.auth": "none",
    }
    listeners = {OUTSIDE: "PLAINTEXT", INSIDE: "SASL_SSL"}
    with LocalCluster(
        folder, zookeeper=worker_zookeeper, chroot=chroot, tls=True, listeners=listeners, **settings
    ) as running:
        yield running


@pytest.mark.long  # logins that end: tests/client/test_secured.py
def test_brokers_log_in_at_each_other_again_and_again(logged_in):
    settings = {"bootstrap.servers": logged_in.bootstrap_servers}
    # Several lives of a login, with replication and requests between brokers all the time.
    for number, _ in enumerate(during(8)):
        written_and_read(settings, f"t{number}", 30)
    logged_in.wait_in_sync()
    assert "refuses the login" not in logged_in.logs()


def test_a_password_of_brokers_is_in_no_log(logged_in):
    assert "swordfish" not in logged_in.logs()


@pytest.mark.long  # one listener of two: above
def test_every_listener_may_be_tls(tmp_path, worker_zookeeper):
    with cluster_of(tmp_path, worker_zookeeper, tls=True) as running:
        certificates = running.brokers[0].certificates
        settings = {
            "bootstrap.servers": running.bootstrap_servers,
            "security.protocol": "ssl",
            "ssl.ca.location": certificates.ca,
            "ssl.certificate.location": certificates.store("client"),
            "ssl.key.location": certificates.store("client"),
        }
        written_and_read(settings, "t")
