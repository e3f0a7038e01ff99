"""Users, ACLs and quotas made by Java's and librdkafka's Admin clients and Kafka's own tools: made, shown, heeded at the next login."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from pylog_spark.client import AclBindingFilter as OurFilter
from pylog_spark.client import Admin, LogError, Producer
from pylog_spark.testing import LocalBroker
from tests.harness.runs import mostly_long
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import until
from tests.peers.tools import java

pytestmark = pytest.mark.peers

TIMEOUT_S = 30
SECRET = "swordfish"
ANONYMOUS = "User:ANONYMOUS"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """One listener without a login, whose users may do everything, and one with."""
    with LocalBroker(
        tmp_path_factory.mktemp("rights"),
        listeners={"OPEN": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"},
        inter_broker_listener_name="OPEN",
        super_users=ANONYMOUS,
        authorizer_class_name=AUTHORIZER,
    ) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: LocalBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def login(broker: LocalBroker, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    return {
        "bootstrap.servers": broker.address_of("LOGIN"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def can_log_in(broker: LocalBroker, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
    errors: list[KafkaError] = []
    client = AdminClient({**login(broker, user, password, mechanism), "error_cb": errors.append, "log_level": 0})

    def outcome() -> str:
        with suppress(KafkaException):
            client.list_topics(timeout=0.5)
            return "taken"
        client.poll(0)
        return "refused" if any(error.code() == KafkaError._AUTHENTICATION for error in errors) else ""

    return until(outcome, "the broker takes or refuses the login") == "taken"


def test_java_makes_users_and_quotas_and_sees_those_of_others(broker: LocalBroker) -> None:
    servers = broker.bootstrap_servers
    assert java("Rights", servers, "user:java=" + SECRET, "quota:java=1024", "quota:=2048").splitlines() == [
        "user java [ScramCredentialInfo{mechanism=SCRAM_SHA_512, iterations=4096}]",
        "quota {user=java} {producer_byte_rate=1024.0}",
        "quota {user=null} {producer_byte_rate=2048.0}",
    ]
    assert can_log_in(broker, "java", SECRET)
    assert not can_log_in(broker, "java", SECRET + "!")
    assert java("Rights", servers, "user:java=other", "quota:java=7", "no-quota:").splitlines()[1:] == [
        "quota {user=java} {producer_byte_rate=7.0}"
    ]
    assert can_log_in(broker, "java", "other")
    assert not can_log_in(broker, "java", SECRET)
    assert java("Rights", servers, "no-user:java", "no-quota:java") == ""
    assert not can_log_in(broker, "java", "other")
    with pytest.raises(RuntimeError, match="ResourceNotFoundException"):
        java("Rights", servers, "no-user:java")
    with pytest.raises(RuntimeError, match=r"InvalidRequestException: .*must be greater than 0"):
        java("Rights", servers, "quota:java=-1")


@pytest.mark.parametrize("mechanism", mostly_long(["SCRAM-SHA-256", "SCRAM-SHA-512"], "SCRAM-SHA-512"))
def test_librdkafka_makes_users_that_log_in_at_once(broker: LocalBroker, admin: AdminClient, mechanism: str) -> None:
    number = getattr(ScramMechanism, mechanism.replace("-", "_"))
    upsertion = UserScramCredentialUpsertion("rd", ScramCredentialInfo(number, 4096), SECRET.encode())
    admin.alter_user_scram_credentials([upsertion])["rd"].result(TIMEOUT_S)
    (described,) = admin.describe_user_scram_credentials(["rd"]).values()
    (info,) = described.result(TIMEOUT_S).scram_credential_infos
    assert (info.mechanism, info.iterations) == (number, 4096)
    assert can_log_in(broker, "rd", SECRET, mechanism)
    assert not can_log_in(broker, "rd", "guess", mechanism)
    admin.alter_user_scram_credentials([UserScramCredentialDeletion("rd", number)])["rd"].result(TIMEOUT_S)
    assert not can_log_in(broker, "rd", SECRET, mechanism)


def test_a_user_of_ours_logs_in_and_may_do_what_acls_of_each_client_say(
    broker: LocalBroker, admin: AdminClient
) -> None:
    with Admin(broker.bootstrap_servers) as ours:
        assert ours.set_user_scram_credential("alice", SECRET).error is None
        ours.create_topic("mine")
    assert not may_write(broker, "mine")
    rule = AclBinding(
        ResourceType.TOPIC,
        "mi",
        ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([rule])[rule].result(TIMEOUT_S)
    assert may_write(broker, "mine")
    tool = ("org.apache.kafka.tools.AclCommand", "--bootstrap-server", broker.bootstrap_servers)
    listed = java(*tool, "--list", "--topic", "mine", "--resource-pattern-type", "match")
    assert "principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW" in listed
    java(*tool, "--add", "--deny-principal", "User:alice", "--operation", "Write", "--topic", "mine")
    assert not may_write(broker, "mine")
    with Admin(broker.bootstrap_servers) as ours:
        found = ours.describe_acls(OurFilter("TOPIC", "mine", "MATCH"))
        assert [(acl.resource_name, acl.pattern_type, acl.permission) for acl in found] == [
            ("mi", "PREFIXED", "ALLOW"),
            ("mine", "LITERAL", "DENY"),
        ]
        (gone,) = ours.delete_acls([OurFilter(permission="DENY")])
        assert [acl.resource_name for acl in gone.acls] == ["mine"]
    assert may_write(broker, "mine")
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert admin.delete_acls([every])[every].result(TIMEOUT_S) == [rule]
    assert not may_write(broker, "mine")


def may_write(broker: LocalBroker, topic: str) -> bool:
    """Whether alice's record is written."""
    settings = login(broker, "alice", SECRET)
    try:
        with Producer(settings.pop("bootstrap.servers"), topic, config=settings) as producer:
            producer.send(b"v")
    except LogError as error:
        if error.kind != "TOPIC_AUTHORIZATION_FAILED":
            raise
        return False
    return True
