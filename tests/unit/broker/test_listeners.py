"""Which listeners a broker has: Kafka's rules, and the sentence for each that is broken."""

import json

import pytest

from pylog_spark.broker.config import broker_config
from pylog_spark.broker.listeners import inter_broker_client, is_loopback, native_listeners, read_listeners
from pylog_spark.broker.setting import ConfigError
from pylog_spark.cluster.model import Endpoint

TWO = "INSIDE://127.0.0.1:9092,OUTSIDE://127.0.0.1:9093"
MAP = "INSIDE:PLAINTEXT,OUTSIDE:SSL"


def read(**given):
    return read_listeners(broker_config((name.replace("_", "."), text) for name, text in given.items()))


def test_one_address_without_a_name_is_plaintext():
    (one,) = read(listeners="[::1]:0").all
    assert (one.name, one.protocol, one.host, one.port, one.advertised) == ("PLAINTEXT", "PLAINTEXT", "::1", 0, None)


def test_names_have_the_protocols_of_the_map_and_are_in_upper_case():
    found = read(listeners=TWO.lower(), listener_security_protocol_map=MAP, inter_broker_listener_name="inside")
    assert [(one.name, one.protocol, one.port) for one in found.all] == [
        ("INSIDE", "PLAINTEXT", 9092),
        ("OUTSIDE", "SSL", 9093),
    ]
    assert found.inter_broker == "INSIDE"


def test_an_advertised_port_of_0_is_the_one_that_is_bound():
    found = read(listeners="127.0.0.1:0", advertised_listeners="PLAINTEXT://log.example:0")
    assert found.bound([4711]).endpoints() == {"PLAINTEXT": Endpoint("log.example", 4711)}
    (native,) = json.loads(native_listeners(broker_config(), found))
    assert (native["advertised_host"], native["advertised_port"]) == ("log.example", None)


@pytest.mark.parametrize(
    ("host", "sent"), [("log.example", "log.example"), ("localhost", "localhost"), ("127.0.0.1", None), ("[::1]", None)]
)
def test_clients_are_sent_the_name_of_a_listener_and_else_what_they_dialled(host, sent):
    found = read(listeners=f"SSL://{host}:9092")
    (native,) = json.loads(native_listeners(broker_config(), found))
    assert (native["advertised_host"], native["advertised_port"]) == (sent, None)


def test_a_listener_on_every_address_has_no_endpoint_of_its_own():
    found = read(listeners="0.0.0.0:9092", allow_plaintext_listeners="true")
    assert found.endpoints() == {}
    with pytest.raises(ConfigError, match=r"advertised.listeners=PLAINTEXT://HOST:PORT"):
        found.check_cluster()


def test_two_listeners_may_share_a_port_when_one_is_ipv4_and_the_other_ipv6():
    found = read(listeners="SSL://127.0.0.1:9092,PLAINTEXT://[::1]:9092")
    assert [one.host for one in found.all] == ["127.0.0.1", "::1"]


@pytest.mark.parametrize("text", ["a", "a:b", "a:70000", ":", "a:", "://a:1", "PLAINTEXT://a"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="NAME://HOST:PORT"):
        read(listeners=text)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"listeners": " , "}, "listeners is empty"),
        ({"listeners": "A://127.0.0.1:1"}, "The listener A has no protocol: add A:PROTOCOL"),
        (
            {"listeners": "SSL://127.0.0.1:1", "listener_security_protocol_map": "A:SSL"},
            "The listener SSL has no protocol",
        ),
        ({"listener_security_protocol_map": "A:TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"listener_security_protocol_map": "A:SSL,a:SSL"}, "has A twice"),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,plaintext://127.0.0.1:2"}, "listeners has PLAINTEXT twice"),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:1"}, "has PLAINTEXT and SSL on port 1"),
        ({"listeners": "PLAINTEXT://localhost:1,SSL://[::1]:1"}, "has PLAINTEXT and SSL on port 1"),
        (
            {"advertised_listeners": "SSL://a:1"},
            r"advertised.listeners has SSL, which is not in listeners \(PLAINTEXT\)",
        ),
        ({"advertised_listeners": "0.0.0.0:1"}, "to which nobody can connect"),
        ({"inter_broker_listener_name": "A", "security_inter_broker_protocol": "SSL"}, "give only one of them"),
        (
            {"inter_broker_listener_name": "A"},
            r"between brokers is A \(inter.broker.listener.name\), which is not in listeners",
        ),
        (
            {"security_inter_broker_protocol": "SSL"},
            "between brokers is SSL .*which is not in listeners: name one of PLAINTEXT",
        ),
        (
            {"listeners": "SSL://127.0.0.1:1,PLAINTEXT://127.0.0.1:2", "advertised_listeners": "SSL://a:1"},
            "between brokers is PLAINTEXT .*which is not in advertised.listeners",
        ),
        (
            {"listeners": "SSL://127.0.0.1:1,SASL_SSL://127.0.0.1:2", "zookeeper_connect": "z:1"},
            "between brokers is PLAINTEXT",
        ),
        ({"listener_name_ssl_ssl.client.auth": "none"}, r"names a listener that is not in listeners \(PLAINTEXT\)"),
    ],
)
def test_what_contradicts_itself_is_one_sentence(given, sentence):
    with pytest.raises(ConfigError, match=sentence):
        read(**given)


def test_brokers_use_the_only_listener_between_each_other_and_a_broker_that_is_alone_needs_none():
    assert read(listeners="SSL://127.0.0.1:1", zookeeper_connect="z:1").inter_broker == "SSL"
    assert read(listeners="SSL://127.0.0.1:1,SASL_SSL://127.0.0.1:2").inter_broker == "SSL"
    assert read(listeners="SSL://127.0.0.1:1,SASL_SSL://127.0.0.1:2", security_inter_broker_protocol="SASL_SSL")


def client(**given):
    named = {"zookeeper.connect": "z:1", **given}.items()
    broker = broker_config((name if "." in name else name.replace("_", "."), text) for name, text in named)
    return inter_broker_client(broker, read_listeners(broker))


def test_brokers_reach_each_other_with_the_certificates_of_their_listener():
    own = {
        "listeners": "SSL://127.0.0.1:1",
        "ssl_keystore_location": "a",
        "listener.name.ssl.ssl.keystore.location": "b",
    }
    assert client(listeners="127.0.0.1:1") == {}
    assert client(zookeeper_connect="z:1", **own) == {
        "security.protocol": "SSL",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.keystore.location": "b",
    }
    assert client(ssl_endpoint_identification_algorithm="", **own)["ssl.endpoint.identification.algorithm"] == ""


def test_brokers_log_in_at_each_other_as_the_listener_and_its_mechanism_say():
    given = {"listeners": "SASL_SSL://127.0.0.1:1", "sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256"}
    with pytest.raises(ConfigError, match=r"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config"):
        client(**given)
    given |= {"sasl.jaas.config": "all", "listener.name.SASL_SSL.scram-sha-256.sasl.jaas.config": "own"}
    found = client(**given)
    assert (found["sasl.mechanism"], found["sasl.jaas.config"]) == ("SCRAM-SHA-256", "own")
    given["sasl_mechanism_inter_broker_protocol"] = "PLAIN"
    assert client(**given)["sasl.jaas.config"] == "all"


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("host", ["0.0.0.0", "", "[::]", "192.168.0.1", "log.example"])
def test_what_is_not_encrypted_is_served_to_other_machines_only_when_that_was_asked_for(protocol, host):
    address = f"{protocol}://{host}:9092"
    with pytest.raises(ConfigError, match=r"--allow-plaintext .*allow_plaintext=True.*allow.plaintext.listeners=true"):
        read(listeners=address, security_inter_broker_protocol=protocol)
    assert read(listeners=address, allow_plaintext_listeners="true")


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_what_is_encrypted_needs_no_permission(protocol):
    assert read(listeners=f"{protocol}://0.0.0.0:9092").first.is_public


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.9.9.9", True), ("0.0.0.0", False), ("::", False),
     ("127.evil.example", False), ("192.168.0.1", False), ("", False)],
)  # fmt: skip
def test_only_this_machines_own_addresses_are_loopback(host, local):
    assert is_loopback(host) is local
