"""Topics and settings by confluent-kafka's AdminClient, as every tool on librdkafka sees them."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType

TIMEOUT_S = 60


@pytest.fixture
def admin(shared, admin_of):
    return admin_of(shared)


def create(admin, name, partitions=1, factor=1, **more):
    admin.create_topics([NewTopic(name, partitions, factor, **more)])[name].result(TIMEOUT_S)


def error_name(call):
    with pytest.raises(KafkaException) as refused:
        call()
    error = refused.value.args[0]
    assert error.str(), "an error has a sentence"
    return error.name()


def describe(admin, kind, name):
    resource = ConfigResource(kind, name)
    return admin.describe_configs([resource])[resource].result(TIMEOUT_S)


def alter(admin, kind, name, entry, operation=AlterConfigOpType.SET):
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value in entry.items()]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def test_a_topic_is_created_grown_and_deleted(admin):
    create(admin, "life", 2)
    admin.create_partitions([NewPartitions("life", 5)])["life"].result(TIMEOUT_S)
    assert len(admin.list_topics("life", timeout=TIMEOUT_S).topics["life"].partitions) == 5
    admin.delete_topics(["life"])["life"].result(TIMEOUT_S)
    assert "life" not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_a_recreated_topic_has_a_new_id_and_none_of_the_old_records(admin, shared):
    def topic_id():
        described = admin.describe_topics(__import__("confluent_kafka").TopicCollection(["again"]))
        return str(described["again"].result(TIMEOUT_S).topic_id)

    create(admin, "again")
    producer = Producer({"bootstrap.servers": shared.bootstrap_servers})
    producer.produce("again", b"old")
    assert producer.flush(TIMEOUT_S) == 0
    first = topic_id()
    admin.delete_topics(["again"])["again"].result(TIMEOUT_S)
    create(admin, "again")
    assert topic_id() != first
    offsets = []
    producer = Producer({"bootstrap.servers": shared.bootstrap_servers})
    producer.produce("again", b"new", on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(TIMEOUT_S) == 0
    assert offsets == [0]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../../etc/passwd", "a" * 250, "ü", "a b", ""])
def test_an_invalid_name_is_refused_and_makes_no_directory(admin, shared, name):
    def directories():
        return {path.name for path in Path(shared.data_dir).iterdir() if path.is_dir()}

    before = directories()
    if name:
        assert error_name(lambda: create(admin, name)) == "TOPIC_EXCEPTION"
    else:
        with pytest.raises((KafkaException, ValueError)):
            create(admin, name)
    # Those of topics that other tests have deleted go in their own time.
    assert directories() <= before


def test_refusals_carry_kafkas_codes(admin):
    create(admin, "codes", 2)
    create(admin, "co.des")
    assert error_name(lambda: create(admin, "codes")) == "TOPIC_ALREADY_EXISTS"
    assert error_name(lambda: create(admin, "co_des")) == "TOPIC_EXCEPTION"
    assert error_name(lambda: create(admin, "factor", 1, 3)) == "INVALID_REPLICATION_FACTOR"
    assert error_name(lambda: create(admin, "huge", 100_000)) == "POLICY_VIOLATION"
    assert error_name(lambda: create(admin, "config", config={"no.such": "1"})) == "INVALID_CONFIG"
    assert error_name(lambda: create(admin, "policy", config={"cleanup.policy": "compress"})) == "INVALID_CONFIG"
    grow = lambda: admin.create_partitions([NewPartitions("codes", 1)])["codes"].result(TIMEOUT_S)  # noqa: E731
    assert error_name(grow) == "INVALID_PARTITIONS"
    gone = lambda: admin.delete_topics(["none"])["none"].result(TIMEOUT_S)  # noqa: E731
    assert error_name(gone) in ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION")


def test_minus_one_takes_the_brokers_defaults(new_broker, admin_of):
    admin = admin_of(new_broker(num_partitions=7))
    create(admin, "defaults", -1, -1)
    assert len(admin.list_topics("defaults", timeout=TIMEOUT_S).topics["defaults"].partitions) == 7


def test_validating_only_creates_nothing(admin):
    admin.create_topics([NewTopic("dry", 3, 1)], validate_only=True)["dry"].result(TIMEOUT_S)
    assert "dry" not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_producing_to_a_missing_topic_creates_it_where_that_is_allowed(new_broker, admin_of):
    broker = new_broker(num_partitions=3)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("auto", b"x")
    assert producer.flush(TIMEOUT_S) == 0
    assert len(admin_of(broker).list_topics(timeout=TIMEOUT_S).topics["auto"].partitions) == 3


@pytest.mark.long  # tests/oracle/test_topics.py
def test_producing_to_a_missing_topic_fails_where_creation_is_off(new_broker, admin_of):
    broker = new_broker(auto_create_topics_enable=False)
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 3000})
    producer.produce("auto", b"x", on_delivery=lambda error, _: errors.append(error.name()))
    producer.flush(TIMEOUT_S)
    assert errors in (["_UNKNOWN_TOPIC"], ["UNKNOWN_TOPIC_OR_PART"], ["_MSG_TIMED_OUT"])
    assert admin_of(broker).list_topics(timeout=TIMEOUT_S).topics == {}


def test_listing_an_unknown_topic_by_name_does_not_create_it_when_the_client_forbids_it(admin):
    admin.describe_configs([ConfigResource(ResourceType.TOPIC, "never")])
    assert "never" not in admin.list_topics(timeout=TIMEOUT_S).topics


def test_broker_settings_that_tools_look_for_are_shown_as_kafka_does(new_broker, admin_of):
    # MaterializeInc/materialize#6078, redpanda#1276, kafbat's ReactiveAdminClient.
    admin = admin_of(new_broker(num_partitions=4))
    entries = describe(admin, ResourceType.BROKER, "1")
    shown = {
        name: (entry.value, entry.is_read_only, entry.is_default, entry.is_sensitive) for name, entry in entries.items()
    }
    assert shown["num.partitions"] == ("4", True, False, False)
    assert shown["auto.create.topics.enable"] == ("true", True, True, False)
    assert shown["default.replication.factor"] == ("1", True, True, False)
    assert shown["inter.broker.protocol.version"] == ("3.9-IV0", True, True, False)
    assert shown["log.retention.hours"] == ("168", True, True, False)
    assert entries["log.dirs"].value.startswith("/")
    assert entries["listeners"].value.startswith("PLAINTEXT://127.0.0.1:")
    assert entries["advertised.listeners"].value == entries["listeners"].value


def test_topic_settings_show_where_they_come_from(new_broker, admin_of):
    admin = admin_of(new_broker(log_segment_bytes=100_000))
    create(admin, "t", config={"retention.ms": "5000"})
    entries = describe(admin, ResourceType.TOPIC, "t")
    shown = {name: (entry.value, entry.source) for name, entry in entries.items()}
    assert shown["retention.ms"] == ("5000", 1)
    assert shown["segment.bytes"] == ("100000", 4)
    assert shown["cleanup.policy"] == ("delete", 5)
    assert shown["max.message.bytes"] == ("1048588", 5)
    assert {synonym.name for synonym in entries["retention.ms"].synonyms.values()} >= {
        "retention.ms",
        "log.retention.hours",
    }


def test_topic_settings_change_while_the_broker_runs_and_survive_a_restart(new_broker, admin_of):
    broker = new_broker()
    admin = admin_of(broker)
    create(admin, "t")
    alter(admin, ResourceType.TOPIC, "t", {"retention.ms": "60000"})
    broker.restart()
    admin = admin_of(broker)
    assert describe(admin, ResourceType.TOPIC, "t")["retention.ms"].value == "60000"
    alter(admin, ResourceType.TOPIC, "t", {"retention.ms": None}, AlterConfigOpType.DELETE)
    assert describe(admin, ResourceType.TOPIC, "t")["retention.ms"].value == "604800000"


def test_a_smaller_max_message_bytes_binds_at_once(admin, shared):
    create(admin, "small")
    alter(admin, ResourceType.TOPIC, "small", {"max.message.bytes": "1000"})
    errors = []
    producer = Producer({"bootstrap.servers": shared.bootstrap_servers})
    producer.produce("small", b"x" * 2000, on_delivery=lambda error, _: errors.append(error and error.name()))
    producer.produce("small", b"x" * 10, on_delivery=lambda error, _: errors.append(error and error.name()))
    producer.flush(TIMEOUT_S)
    assert "MSG_SIZE_TOO_LARGE" in errors


def test_a_changed_broker_setting_is_felt_by_topics_and_survives_a_restart(new_broker, admin_of):
    broker = new_broker()
    create(admin_of(broker), "t")
    alter(admin_of(broker), ResourceType.BROKER, "1", {"log.retention.ms": "70000"})
    for _ in range(2):
        entry = describe(admin_of(broker), ResourceType.TOPIC, "t")["retention.ms"]
        assert (entry.value, entry.source) == ("70000", 2)
        broker.restart()


@pytest.mark.parametrize(
    ("kind", "name", "change", "expected"),
    [
        (ResourceType.TOPIC, "none", {"retention.ms": "1"}, "UNKNOWN_TOPIC_OR_PART"),
        (ResourceType.BROKER, "1", {"num.partitions": "9"}, "INVALID_REQUEST"),
    ],
)
def test_a_change_that_cannot_be_is_refused(admin, kind, name, change, expected):
    assert error_name(lambda: alter(admin, kind, name, change)) == expected
