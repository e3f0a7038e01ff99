"""Who may use the registry: users of the broker, by its ACLs, over its certificate; and when it refuses to start."""

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from pylog_spark.client import Admin, Consumer, Producer
from pylog_spark.client.errors import LogError
from pylog_spark.errors import PylogError
from pylog_spark.registry.client import RegistryClient
from pylog_spark.results.security import AclBinding, AclBindingFilter
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.local_broker import LocalBrokerError
from tests.harness.security import AUTHORIZER

SCHEMA = Schema('"string"', "AVRO")


def test_users_of_the_broker_log_in_and_have_the_rights_that_its_acls_give_them(tmp_path: Path) -> None:
    with LocalBroker(
        tmp_path / "data",
        sasl="SCRAM-SHA-256",
        schema_registry=True,
        authorizer_class_name=AUTHORIZER,
    ) as broker:
        assert broker.login is not None
        with Admin(broker.bootstrap_servers, broker.security_settings) as admin:
            admin.set_user_scram_credential("reader", "secret:of reader", "SCRAM-SHA-256")
            admin.create_acls([AclBinding("TOPIC", "_schemas", "LITERAL", "User:reader", "*", "READ", "ALLOW")])

        def client(login: str) -> SchemaRegistryClient:
            return SchemaRegistryClient({"url": broker.schema_registry_url, "basic.auth.user.info": login})

        def status(login: str) -> int:
            with pytest.raises(SchemaRegistryError) as refused:
                client(login).register_schema("s", SCHEMA)
            return int(refused.value.http_status_code)

        made = client(f"{broker.login.user}:{broker.login.password}").register_schema("s", SCHEMA)
        assert client("reader:secret:of reader").get_schema(made).schema_str == '"string"'
        assert status("reader:secret:of reader") == 403
        assert status("reader:wrong") == status("nobody:secret") == 401
        with pytest.raises(SchemaRegistryError) as refused:
            SchemaRegistryClient({"url": broker.schema_registry_url}).get_subjects()
        assert refused.value.http_status_code == 401


def test_dead_letters_reach_no_topic_that_whoever_names_it_may_not_write_to(tmp_path: Path) -> None:
    """The broker writes them as itself, which may write everywhere: also into the registry's own topic."""
    checked = {"confluent.value.schema.validation": "true"}
    letters = "schema.validation.dead.letter.topic"
    settings = {"sasl": "SCRAM-SHA-256", "schema_registry": True, "authorizer_class_name": AUTHORIZER}
    with (
        LocalBroker(tmp_path / "data", **settings) as broker,
        Admin(broker.bootstrap_servers, broker.security_settings) as chief,
    ):
        chief.set_user_scram_credential("mallory", "secret", "SCRAM-SHA-256")
        login = {"sasl.username": "mallory", "sasl.password": "secret"}
        own = {name: text for name, text in broker.security_settings.items() if name != "sasl.jaas.config"} | login
        rights = ("CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "WRITE")
        chief.create_acls([allowed("mine", right) for right in rights])
        chief.create_topic("payments", 1, 1)
        with Admin(broker.bootstrap_servers, own) as mallory:
            for target in ("payments", "not-there", "_schemas"):
                for change in (
                    lambda target=target: mallory.create_topic("mine", 1, 1, {**checked, letters: target}),
                    lambda target=target: mallory.alter_configs("topic", "mine", {letters: target}),
                ):
                    with pytest.raises(LogError) as refused:
                        change()
                    assert refused.value.kind == "TOPIC_AUTHORIZATION_FAILED"
            with pytest.raises(LogError) as refused:
                chief.create_topic("chiefs", 1, 1, {letters: "_schemas"})
            assert refused.value.kind == "INVALID_CONFIG"
            chief.create_acls([allowed("payments", "WRITE")])
            mallory.create_topic("mine", 1, 1, {**checked, letters: "payments"})
        with Producer(broker.bootstrap_servers, "mine", own) as producer:
            producer.send(b"taken")
        chief.delete_acls([AclBindingFilter(resource_name="payments")])
        with (
            pytest.raises(LogError, match="dead letter topic"),
            Producer(broker.bootstrap_servers, "mine", own) as producer,
        ):
            producer.send(b"refused")
        with Consumer(
            broker.bootstrap_servers, "payments", start="earliest", follow=False, config=broker.security_settings
        ) as consumer:
            assert [record.value for record in consumer] == [b"taken"]


def allowed(topic: str, operation: str) -> AclBinding:
    """What mallory may do."""
    return AclBinding("TOPIC", topic, "LITERAL", "User:mallory", "*", operation, "ALLOW")


def test_the_registry_shows_the_brokers_certificate(tmp_path: Path) -> None:
    broker = LocalBroker(tmp_path / "data", tls=True, schema_registry=("--schema-registry", "https://127.0.0.1:0"))
    with broker:
        assert broker.certificates is not None
        assert broker.schema_registry_url.startswith("https://")
        authority = broker.security_settings["ssl.truststore.location"]
        trusting = {"url": broker.schema_registry_url, "ssl.ca.location": authority}
        with closing(SchemaRegistryClient(trusting)) as client:
            assert client.register_schema("s", SCHEMA) == 1
        with pytest.raises(PylogError, match="certificate verify failed"):
            RegistryClient(broker.schema_registry_url).latest("s")


def test_a_registry_without_a_login_is_refused_where_the_broker_asks_for_one(tmp_path: Path) -> None:
    listeners = {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_PLAINTEXT"}
    settings = {"inter_broker_listener_name": "INSIDE"}
    refused = LocalBroker(tmp_path / "a", listeners=listeners, sasl="SCRAM-SHA-512", schema_registry=True, **settings)
    with closing(refused), pytest.raises(LocalBrokerError, match="--schema-registry-without-login"):
        refused.start()
    option = ("--schema-registry-without-login",)
    with LocalBroker(
        tmp_path / "b", listeners=listeners, sasl="SCRAM-SHA-512", schema_registry=option, **settings
    ) as broker:
        assert SchemaRegistryClient({"url": broker.schema_registry_url}).register_schema("s", SCHEMA) == 1


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("0.0.0.0:0", "without encryption"),
        ("here", "is no address of a schema registry"),
        ("https://127.0.0.1:0", "must be a PEM file"),
    ],
)
def test_an_address_that_cannot_be_served_is_refused_with_a_sentence(
    tmp_path: Path, address: str, sentence: str
) -> None:
    broker = LocalBroker(tmp_path / "data", schema_registry=("--schema-registry", address))
    with closing(broker), pytest.raises(LocalBrokerError, match=sentence):
        broker.start()
    assert not broker.running
