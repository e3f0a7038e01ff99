"""Listeners with TLS: real clients with certificates, what is refused, certificates that are replaced, and peers that do not go on."""

import contextlib
import hashlib
import os
import socket
import ssl
import struct
import subprocess

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pylog_spark.testing import LocalBroker, LocalBrokerError
from pylog_spark.testing.certificates import LOCAL_HOSTS, Certificates
from tests.broker.wire import Connection, array, connect, room_for
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import brief, said, until
from tests.hostile.floods import peak_bytes
from tests.peers.tools import java

METADATA, API_VERSIONS = 3, 18
BOTH = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"}


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """One broker with TLS, for the tests that leave each other alone."""
    with LocalBroker(tmp_path_factory.mktemp("secure") / "data", tls=True) as running:
        yield running


def librdkafka(broker, **more):
    """Settings of librdkafka's clients."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "ssl",
        "ssl.ca.location": broker.certificates.ca,
        **more,
    }


def with_certificate(broker, name="client"):
    return {
        "ssl.certificate.location": broker.certificates.store(name),
        "ssl.key.location": broker.certificates.store(name),
    }


@contextlib.contextmanager
def tls(broker, address=None, dialled=None, **options):
    """A raw connection over TLS, as `connect`; `dialled` is the name in the handshake."""
    context = ssl.create_default_context(cafile=broker.certificates.ca)
    for name, value in options.items():
        setattr(context, name, value)
    host, _, port = (address or broker.bootstrap_servers).rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=60)
    with context.wrap_socket(plain, server_hostname=dialled or host) as wrapped:
        connection = Connection.__new__(Connection)
        connection.socket, connection.sent = wrapped, 0
        yield connection


def is_served(connection):
    return connection.ask(API_VERSIONS, 0, b"").take("h") == 0


def made(broker, name, settings, **config):
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(60)


def written(settings, topic, values):
    producer = Producer({**settings, "linger.ms": 20, "batch.size": 1_000_000, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(settings, topic, count):
    consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values = []

        def all_read():
            values.extend(message.value() for message in consumer.consume(count - len(values), 0.5))
            return len(values) == count

        until(all_read, f"{count} records of {topic} are read", pause_s=0)
        return values
    finally:
        consumer.close()


def test_the_log_names_the_setting_for_a_client_of_a_version_that_is_not_enabled(new_broker):
    broker = new_broker(tls=True, ssl_enabled_protocols="TLSv1.3")
    with pytest.raises(ssl.SSLError), tls(broker, maximum_version=ssl.TLSVersion.TLSv1_2):
        pass
    said(broker, "see ssl.enabled.protocols")


@pytest.mark.parametrize(("name", "sent"), [("localhost", "localhost"), (None, "127.0.0.1")])
def test_a_client_is_sent_the_name_by_which_it_dialled_since_the_certificate_is_for_that(secure, name, sent):
    with tls(secure, dialled=name) as connection:
        answer = connection.ask(METADATA, 1, array([]))
        assert (answer.take("i"), answer.take("i")) == (1, secure.broker_id)
        assert (answer.text(), answer.take("i")) == (sent, secure.port)


def test_confluent_kafka_reads_what_it_wrote_in_records_of_every_size(secure):
    settings = librdkafka(secure)
    made(secure, "sizes", settings)
    values = [os.urandom(size) for size in (0, 1, 100, 16_383, 16_384, 16_385, 65_536, 900_000) for _ in range(4)]
    written(settings, "sizes", values)
    assert read(settings, "sizes", len(values)) == values


@pytest.mark.long  # tests/client/test_secured.py
def test_many_megabytes_come_back_unchanged_both_ways(secure):
    settings = librdkafka(secure)
    made(secure, "much", settings)
    value = os.urandom(100_000)
    written(settings, "much", (value for _ in range(400)))
    digest = hashlib.sha256()
    for got in read(settings, "much", 400):
        digest.update(got)
    assert digest.digest() == hashlib.sha256(value * 400).digest()


@pytest.mark.long  # tests/interop/test_secured_matrix.py
def test_kcat_and_kafkas_own_tools_are_served(secure, tmp_path):
    ask = [
        "-b",
        secure.bootstrap_servers,
        "-X",
        "security.protocol=ssl",
        "-X",
        f"ssl.ca.location={secure.certificates.ca}",
    ]
    subprocess.run(["kcat", "-P", *ask, "-t", "kcat"], input=b"one\ntwo\n", check=True, timeout=60)
    done = subprocess.run(["kcat", "-C", *ask, "-t", "kcat", "-e", "-q"], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"one\ntwo\n"
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in secure.certificates.client_settings().items()))
    shown = java(
        "org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", secure.bootstrap_servers,
        "--command-config", str(properties), "--topic", "kcat",
    )  # fmt: skip
    assert "kcat:0:2" in shown


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(secure, version):
    with tls(secure, minimum_version=version, maximum_version=version) as connection:
        assert connection.socket.version() == version.name.replace("_", ".")
        assert is_served(connection)


def test_records_of_one_byte_are_put_together(secure):
    with tls(secure) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        header = struct.pack(">hhi", API_VERSIONS, 0, 7) + struct.pack(">h", -1)
        for byte in struct.pack(">i", len(header)) + header:
            connection.socket.sendall(bytes([byte]))
        assert connection.receive()[0] == 7


def test_a_client_without_tls_at_a_listener_with_it_is_closed_and_the_log_says_what_to_do(new_broker):
    broker = new_broker(tls=True)
    with connect(broker.bootstrap_servers) as connection:
        connection.send(API_VERSIONS, 0, b"")
        with contextlib.suppress(EOFError, ConnectionResetError):
            # TLS says so in a record of its own.
            connection.exactly(1 << 20)
        assert connection.closed()
    said(broker, "it does not speak TLS")
    said(broker, "the listener SSL")


def test_a_client_with_tls_at_a_listener_without_it_is_closed_and_the_log_says_what_to_do(new_broker):
    broker = new_broker()
    context = ssl.create_default_context()
    with socket.create_connection((broker.host, broker.port), timeout=60) as raw, pytest.raises(OSError):
        context.wrap_socket(raw, server_hostname="localhost")
    until(lambda: "it speaks TLS, and this listener does not" in broker.logs(), "the log says so")


def refused(broker, sentence, **shown):
    """A client never gets an answer, and goes on asking until the broker's log says why."""
    client = AdminClient(librdkafka(broker, log_level=0, **shown))

    def is_said():
        with pytest.raises(KafkaException):
            client.list_topics(timeout=0.5)
        return sentence in broker.logs()

    until(is_said, f"the log says {sentence}")


@pytest.mark.long  # tests/interop/test_secured_matrix.py
def test_a_client_that_does_not_trust_the_broker_does_not_go_on(secure, tmp_path):
    other = Certificates(tmp_path).made()
    producer = Producer(
        {**librdkafka(secure), "ssl.ca.location": other.ca, "message.timeout.ms": 3_000, "log_level": 0}
    )
    producer.produce("t", b"v")
    assert producer.flush(60) == 0
    refused(secure, "does not trust this broker's certificate", **{"ssl.ca.location": other.ca})


@pytest.mark.long  # tests/interop/test_secured_matrix.py
def test_clients_must_show_a_certificate_that_is_trusted_where_that_is_required(new_broker, tmp_path):
    broker = new_broker(tls=True, ssl_client_auth="required")
    assert AdminClient(librdkafka(broker, **with_certificate(broker))).list_topics(timeout=60).brokers
    strangers = Certificates(tmp_path / "other").made()
    refused(broker, "it showed no certificate")
    shown = {"ssl.certificate.location": strangers.store("client"), "ssl.key.location": strangers.store("client")}
    with pytest.raises(KafkaException):
        AdminClient(librdkafka(broker, log_level=0, **shown)).list_topics(timeout=3)


def test_a_rule_makes_the_principal_of_a_certificate_whom_rights_and_the_log_name(new_broker):
    broker = new_broker(
        tls=True,
        ssl_client_auth="required",
        ssl_principal_mapping_rules="RULE:^CN=([a-z]+).*$/$1 of the rule/U,DEFAULT",
        authorizer_class_name=AUTHORIZER,
        super_users="User:BROKER OF THE RULE",
    )
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        made(broker, "t", librdkafka(broker, **with_certificate(broker)))
    denied = 'User:CLIENT OF THE RULE at 127.0.0.1 may not CREATE TOPIC "t" for CreateTopics: no ACL allows it'
    said(broker, denied)
    made(broker, "t", librdkafka(broker, **with_certificate(broker, "broker")))


def test_a_certificate_of_a_stranger_is_refused_with_its_own_line(new_broker, tmp_path):
    broker, strangers = new_broker(tls=True, ssl_client_auth="requested"), Certificates(tmp_path / "other").made()
    context = ssl.create_default_context(cafile=broker.certificates.ca)
    context.load_cert_chain(strangers.store("client"))
    with (
        contextlib.suppress(OSError),
        socket.create_connection((broker.host, broker.port), timeout=60) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as wrapped,
    ):
        wrapped.recv(1)
    said(broker, "its certificate is not trusted")


@pytest.mark.parametrize(("usage", "days", "sentence"), [("server", (-1, 1), "clientAuth"), ("both", (-3, -1), "expired"), ("both", (1, 3), "not valid before")])  # fmt: skip
def test_a_clients_certificate_of_another_use_or_time_is_refused(new_broker, tmp_path, usage, days, sentence):
    bad = Certificates(tmp_path / "bad").made(["client"], usage=usage, days=days)
    broker = new_broker(tls=True, ssl_client_auth="required", ssl_truststore_location=bad.ca)
    shown = {"ssl.certificate.location": bad.store("client"), "ssl.key.location": bad.store("client")}
    refused(broker, sentence, **shown)


def test_a_listener_of_its_own_settings_asks_for_certificates_and_another_does_not(new_broker):
    broker = new_broker(
        tls=True,
        listeners={"INSIDE": "SSL", "OUTSIDE": "SSL"},
        inter_broker_listener_name="INSIDE",
        **{"listener.name.outside.ssl.client.auth": "required"},
    )
    with tls(broker, broker.address_of("INSIDE")) as connection:
        assert is_served(connection)
    with pytest.raises((OSError, EOFError)), tls(broker, broker.address_of("OUTSIDE")) as connection:
        is_served(connection)


def serial_of(broker):
    with tls(broker, verify_mode=ssl.CERT_REQUIRED) as connection:
        return connection.socket.getpeercert()["serialNumber"]


def test_a_new_certificate_is_used_within_seconds_and_open_connections_stay(new_broker):
    broker = new_broker(tls=True)
    before = serial_of(broker)
    with tls(broker) as stays:
        assert is_served(stays)
        broker.certificates.replace({"client": LOCAL_HOSTS, "broker": LOCAL_HOSTS})
        said(broker, "uses its new certificate")
        assert serial_of(broker) != before
        assert is_served(stays)


@pytest.mark.long  # a new one that can: above
def test_a_new_file_that_cannot_be_used_changes_nothing_but_the_log(new_broker):
    broker = new_broker(tls=True)
    before = serial_of(broker)
    with open(broker.certificates.store("broker"), "w", encoding="ascii") as file:
        file.write("no certificate")
    said(broker, "keeps the certificate that it has")
    assert serial_of(broker) == before
    broker.certificates.replace({"broker": LOCAL_HOSTS})
    said(broker, "uses its new certificate")
    assert serial_of(broker) != before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ssl_keystore_location": "/nowhere.pem"}, "ssl.keystore.location"),
        ({"ssl_keystore_location": ""}, "set ssl.keystore.location"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
        ({"ssl_principal_mapping_rules": "RULE:x"}, "ssl.principal.mapping.rules"),
    ],
)
def test_settings_of_tls_that_cannot_work_are_one_sentence_at_the_start(tmp_path, settings, sentence):
    broker = LocalBroker(tmp_path / "data", tls=True, **settings)
    try:
        with pytest.raises(LocalBrokerError, match=sentence):
            broker.start()
        assert "Traceback" not in broker.logs()
    finally:
        broker.close()


@contextlib.contextmanager
def half_open(broker, count):
    """Connections that begin a handshake and do not go on."""
    with room_for(count), contextlib.ExitStack() as held:
        peers = []
        for number in range(count):
            peer = held.enter_context(socket.create_connection((broker.host, broker.port), timeout=60))
            if number % 2:
                # The beginning of a ClientHello.
                with contextlib.suppress(OSError):
                    peer.sendall(b"\x16\x03\x01\x02\x00\x01")
            peers.append(peer)
        yield peers


def is_closed(peer):
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def is_open(peer):
    with brief(peer, 0.001):
        try:
            return peer.recv(1) != b""
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False


@pytest.mark.long  # tests/hostile/test_login_floods.py
def test_half_open_connections_harm_nobody_and_end(new_broker):
    broker = new_broker(tls=True, ssl_handshake_max_connections=200, ssl_handshake_timeout_ms=8_000)
    with tls(broker) as connection:
        assert is_served(connection)
    before = peak_bytes(broker)
    with half_open(broker, 1_000) as peers:
        with tls(broker) as connection:
            assert is_served(connection)
        # Who is held up waits until the others' time is over.
        assert any(map(is_open, peers))
        assert peak_bytes(broker) - before < 64 << 20
        said(broker, "ssl.handshake.max.connections=200")
        assert all(map(is_closed, peers))


def test_a_client_that_reads_nothing_costs_little_memory(new_broker):
    broker = new_broker(tls=True)
    settings = librdkafka(broker)
    made(broker, "t", settings)
    written(settings, "t", (os.urandom(100_000) for _ in range(200)))
    before = peak_bytes(broker)
    fetch = struct.pack(">iiiib", -1, 100, 1, 50 << 20, 0) + struct.pack(">i", 1) + struct.pack(">h", 1) + b"t"
    fetch += struct.pack(">i", 1) + struct.pack(">iqi", 0, 0, 50 << 20)
    with contextlib.ExitStack() as held:
        for _ in range(20):
            connection = held.enter_context(tls(broker))
            for _ in range(10):
                connection.send(1, 4, fetch)
        with tls(broker) as connection:
            assert is_served(connection)
        assert peak_bytes(broker) - before < 48 << 20
