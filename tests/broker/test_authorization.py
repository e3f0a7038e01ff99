"""ACLs at a broker, for users who have logged in, with clients that are not ours: what each may do, what it sees, and what the log says."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pylog_spark.testing import LocalBroker, LocalBrokerError
from tests.harness.security import AUTHORIZER
from tests.harness.waiting import said, seconds_until, until

PASSWORD = "swordfish"  # of a broker of this test alone
#: Who comes over the first listener is not asked who it is, and may do everything.
LISTENERS = {"PLAINTEXT": "PLAINTEXT", "SECURED": "SASL_PLAINTEXT"}
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
}
EVERY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def admin_of(broker):
    return AdminClient({"bootstrap.servers": broker.address_of("PLAINTEXT")})


def as_user(broker, user, **more):
    """Settings of a client that logs in."""
    return {
        "bootstrap.servers": broker.address_of("SECURED"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": PASSWORD,
        "log_level": 0,
        **more,
    }


def acl(operation, resource, name, principal="User:alice", *, prefixed=False, deny=False):
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return AclBinding(ResourceType[resource], name, pattern, principal, "*", AclOperation[operation], permission)


def allow(broker, *acls):
    """Exchange all ACLs."""
    admin = admin_of(broker)
    for deleted in admin.delete_acls([EVERY_ACL]).values():
        deleted.result(60)
    for created in admin.create_acls(list(acls)).values() if acls else ():
        created.result(60)


def produced(broker, user, topic):
    """The error of one record, or None."""
    errors = []
    producer = Producer(as_user(broker, user))
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    return errors[0] and errors[0].code()


def consumed(broker, user, topic, group):
    """The first record of the topic, or the error instead of it."""
    consumer = Consumer(as_user(broker, user, **{"group.id": group, "auto.offset.reset": "earliest"}))
    try:
        consumer.subscribe([topic])
        message = until(lambda: consumer.poll(0.1), "something comes")
        return message.error().code() if message.error() else message.value()
    except KafkaException as refused:
        return refused.args[0].code()
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker with two users and two topics."""
    with LocalBroker(tmp_path_factory.mktemp("data"), listeners=LISTENERS, **SETTINGS) as running:
        admin = admin_of(running)
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        users = [UserScramCredentialUpsertion(name, credential, PASSWORD.encode()) for name in ("alice", "bob")]
        for altered in admin.alter_user_scram_credentials(users).values():
            altered.result(60)
        for created in admin.create_topics([NewTopic("mine", 1, 1), NewTopic("secret", 1, 1)]).values():
            created.result(60)
        yield running


def test_a_user_writes_reads_and_sees_what_acls_allow_and_nothing_else(broker):
    allow(broker, acl("ALL", "TOPIC", "mine"), acl("READ", "GROUP", "my-", prefixed=True))
    assert produced(broker, "alice", "mine") is None
    assert produced(broker, "alice", "secret") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert produced(broker, "bob", "mine") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consumed(broker, "alice", "mine", "my-group") == b"x"
    assert consumed(broker, "alice", "mine", "other-group") == KafkaError.GROUP_AUTHORIZATION_FAILED
    assert set(AdminClient(as_user(broker, "alice")).list_topics(timeout=60).topics) == {"mine"}
    assert AdminClient(as_user(broker, "bob")).list_topics(timeout=60).topics == {}


def test_a_denial_wins_and_a_change_holds_within_a_second(broker):
    allow(broker, acl("ALL", "TOPIC", "*"), acl("WRITE", "TOPIC", "sec", prefixed=True, deny=True))
    assert produced(broker, "alice", "secret") == KafkaError.TOPIC_AUTHORIZATION_FAILED

    def holds_after_s():
        allow(broker, acl("ALL", "TOPIC", "*"), acl("WRITE", "TOPIC", "sec", prefixed=True, deny=True))
        until(lambda: produced(broker, "alice", "secret") == KafkaError.TOPIC_AUTHORIZATION_FAILED, "the denial holds")
        allow(broker, acl("ALL", "TOPIC", "*"))
        return seconds_until(lambda: produced(broker, "alice", "secret") is None, "the change holds")

    # A busy machine may stand still during one of them.
    assert any(holds_after_s() < 1 for _ in range(5))


def test_only_who_may_alter_the_cluster_changes_acls(broker):
    allow(broker, acl("DESCRIBE", "BROKER", "kafka-cluster"))
    alice = AdminClient(as_user(broker, "alice"))
    assert len(alice.describe_acls(EVERY_ACL).result(60)) == 1
    wanted = acl("ALL", "TOPIC", "*")
    with pytest.raises(KafkaException) as refused:
        alice.create_acls([wanted])[wanted].result(60)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException):
        alice.delete_acls([EVERY_ACL])[EVERY_ACL].result(60)
    assert len(admin_of(broker).describe_acls(EVERY_ACL).result(60)) == 1


def test_what_was_denied_is_one_line_of_the_log(broker):
    allow(broker)
    assert produced(broker, "bob", "secret") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    line = 'User:bob at 127.0.0.1 may not DESCRIBE TOPIC "secret" for Metadata: no ACL allows it'
    said(broker, line)
    said(broker, "pylog.broker.authorizer")
    assert PASSWORD not in broker.logs()


def test_acls_hold_after_a_restart(tmp_path):
    with LocalBroker(tmp_path, listeners=LISTENERS, **SETTINGS) as running:
        allow(running, acl("READ", "TOPIC", "mine"), acl("READ", "TOPIC", "also-", prefixed=True))
    with LocalBroker(tmp_path, listeners=LISTENERS, **SETTINGS) as running:
        # Kept until the answer is there: what is asked ends with its client.
        admin = admin_of(running)
        stored = admin.describe_acls(EVERY_ACL).result(60)
        assert {one.name for one in stored} == {"mine", "also-"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"super.users": "User:admin;alice"}, '"alice" is no principal'),
        ({"authorizer.class.name": "org.example.Mine"}, "authorizer.class.name"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_sentence(tmp_path, settings, sentence):
    broker = LocalBroker(tmp_path, **{**SETTINGS, **settings})
    try:
        with pytest.raises(LocalBrokerError) as refused:
            broker.start()
    finally:
        broker.close()
    assert sentence in str(refused.value)
