"""What the two halves say to each other under names: one that is unknown, missing or of another type is refused by name, both ways."""

import json
import uuid

import pytest

from pylog_spark._native import Client, NativeBroker, NativeError
from pylog_spark.broker import config
from pylog_spark.broker.config import broker_config
from tests.harness.ports import nowhere

PARTITION = {
    "partition": 0,
    "leader": 1,
    "leader_epoch": 0,
    "replicas": [1],
    "isr": [1],
    "partition_epoch": 0,
    "adding": [],
    "removing": [],
    "elr": [],
}
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "t",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
CREDENTIAL = {
    "user": "alice",
    "mechanism": "SCRAM-SHA-256",
    "salt": "c2FsdA==",
    "stored_key": "A" * 43 + "=",
    "server_key": "A" * 43 + "=",
    "iterations": 4096,
}
QUOTA = {"entity": {"user": "alice"}, "values": {"producer_byte_rate": 1.0}}
SECURITY = {"scram": [CREDENTIAL], "acls": [ACL], "quotas": [QUOTA], "decoy_key": "0f" * 32}
VIEW = {"controller_id": 1, "controller_epoch": 1, "brokers": [], "dead": [], "level": None}


def settings():
    return json.loads(config.native_settings(broker_config(), "c", "PLAINTEXT", {}))


def topic(**changed):
    whole = {"name": "t", "topic_id": str(uuid.uuid4()), "internal": False, "partitions": [PARTITION]}
    return {**whole, "config": config.log_config(broker_config(), {}), **changed}


@pytest.fixture
def native(tmp_path):
    broker = NativeBroker(str(tmp_path / "data"), json.dumps(settings()))
    yield broker
    broker.close(1000)


def without(document, name):
    return {key: value for key, value in document.items() if key != name}


def refusal(call, *arguments):
    with pytest.raises(NativeError) as refused:
        call(*arguments)
    kind, sentence = refused.value.args
    assert kind == "INVALID_ARGUMENT"
    return sentence


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({**settings(), "num.io.thread": 8}, "there is no setting num.io.thread here"),
        (without(settings(), "num.io.threads"), "the setting num.io.threads is missing"),
        (without(settings(), "clustered"), "the setting clustered is missing"),
        ({**settings(), "num.io.threads": "8"}, "num.io.threads must be a whole number from 1 to 2147483647"),
        ({**settings(), "group.max.size": 0}, "group.max.size must be a whole number from 1 to 2147483647"),
    ],
)
def test_settings_of_the_broker_that_do_not_fit_are_refused(tmp_path, changed, sentence):
    assert refusal(NativeBroker, str(tmp_path), json.dumps(changed)).startswith(sentence)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (topic(config={**topic()["config"], "retention": 1}), "retention"),
        (topic(config=without(topic()["config"], "retention.ms")), "retention.ms"),
        (topic(config={**topic()["config"], "retention.ms": "1"}), "retention.ms"),
        (without(topic(), "internal"), "internal"),
        (topic(kind="x"), "kind"),
        (topic(partitions=[without(PARTITION, "elr")]), "elr"),
        (topic(partitions=[{**PARTITION, "observers": []}]), "observers"),
    ],
)
def test_a_topic_that_does_not_fit_is_refused(native, changed, named):
    assert named in refusal(native.apply_topics, json.dumps([changed]))
    assert named in refusal(native.expect_topics, json.dumps([changed]))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (without(VIEW, "level"), "level"),
        ({**VIEW, "epoch": 1}, "epoch"),
        ({**VIEW, "brokers": [{"id": 1, "host": "h", "port": 1, "epoch": 1}]}, "rack"),
    ],
)
def test_a_view_of_the_cluster_that_does_not_fit_is_refused(native, changed, named):
    assert named in refusal(native.apply_cluster, json.dumps(changed))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        *((without(SECURITY, name), name) for name in SECURITY),
        ({**without(SECURITY, "acls"), "acl": SECURITY["acls"]}, "acl"),
        ({**SECURITY, "users": []}, "users"),
        ({**SECURITY, "decoy_key": "0f"}, "decoy_key"),
        ({**SECURITY, "scram": [{**CREDENTIAL, "password": "x"}]}, "password"),
        ({**SECURITY, "scram": [without(CREDENTIAL, "salt")]}, "salt"),
        ({**SECURITY, "scram": [{**CREDENTIAL, "iterations": 1}]}, "iterations"),
        ({**SECURITY, "acls": [{**ACL, "kind": "x"}]}, "kind"),
        ({**SECURITY, "acls": [{**ACL, "operation": "READD"}]}, "READD"),
        ({**SECURITY, "quotas": [{**QUOTA, "value": 1}]}, "value"),
        ({**SECURITY, "quotas": [without(QUOTA, "values")]}, "values"),
    ],
)
def test_users_acls_and_quotas_that_do_not_fit_are_refused(native, changed, named):
    native.apply_security(json.dumps(SECURITY))
    assert named in refusal(native.apply_security, json.dumps(changed))


@pytest.mark.parametrize("own", [{"share.session.timeout": 1}, {"share.session.timeout.ms": "1"}])
def test_settings_of_a_group_that_do_not_fit_are_refused(native, own):
    assert next(iter(own)) in refusal(native.apply_group_configs, json.dumps({"g": own}))


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("list_groups", {"states": []}, "types"),
        ("list_groups", {"states": [], "types": [], "kinds": []}, "kinds"),
        ("group_offsets", {"group": "g"}, "stable"),
        ("list_transactions", {"states": [], "producer_ids": [], "duration_ms": -1}, "pattern"),
        ("elect_leaders", {"unclean": False}, "partitions"),
        ("update_features", {"feature": "f", "level": 1}, "validate_only"),
        ("features", {"all": True}, "all"),
        ("abort_transaction", {"topic": "t", "partitions": 0}, "partitions"),
    ],
)
def test_arguments_that_do_not_fit_a_request_are_refused(name, arguments, named):
    client = Client({"bootstrap.servers": nowhere()})
    assert named in refusal(client.request, name, json.dumps(arguments))
    client.close()
