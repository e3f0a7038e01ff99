"""What the options of ``pylog acl`` mean: the same ACLs as Kafka's kafka-acls makes."""

import click
import pytest

from pylog_spark.cli.acl import operation_of, operations_on, resources_of

TOPIC, GROUP, ID, CLUSTER = ("TOPIC", "t"), ("GROUP", "g"), ("TRANSACTIONAL_ID", "x"), ("CLUSTER", "kafka-cluster")


def done(resources, *operations, producer=False, consumer=False, idempotent=False):
    return set(operations_on(resources, operations, producer=producer, consumer=consumer, idempotent=idempotent))


def test_each_operation_is_done_to_each_resource_and_without_any_it_is_all():
    assert done([TOPIC, GROUP], "READ", "DESCRIBE") == {
        (TOPIC, "READ"),
        (TOPIC, "DESCRIBE"),
        (GROUP, "READ"),
        (GROUP, "DESCRIBE"),
    }
    assert done([TOPIC, CLUSTER]) == {(TOPIC, "ALL"), (CLUSTER, "ALL")}
    assert done([GROUP], "ALL") == {(GROUP, "ALL")}


def test_a_producer_and_a_consumer_do_what_kafka_says():
    topic = {(TOPIC, "WRITE"), (TOPIC, "DESCRIBE"), (TOPIC, "CREATE")}
    assert done([TOPIC], producer=True) == topic
    transactional = topic | {(ID, "WRITE"), (ID, "DESCRIBE")}
    assert done([TOPIC, ID], producer=True) == transactional
    assert done([TOPIC, ID], producer=True, idempotent=True) == transactional | {(CLUSTER, "IDEMPOTENT_WRITE")}
    reads = {(TOPIC, "READ"), (TOPIC, "DESCRIBE"), (GROUP, "READ")}
    assert done([TOPIC, GROUP], consumer=True) == reads
    assert done([TOPIC, GROUP], consumer=True, producer=True) == reads | topic


@pytest.mark.parametrize(
    ("resources", "given", "sentence"),
    [
        ([GROUP], {"operations": ["WRITE"]}, "WRITE is not an operation on GROUP; use READ"),
        ([TOPIC, CLUSTER], {"operations": ["READ"]}, "READ is not an operation on CLUSTER; use CREATE"),
        ([GROUP], {"consumer": True}, "need a --topic"),
        ([TOPIC], {"consumer": True}, "--consumer needs a --group"),
        ([TOPIC], {"producer": True, "operations": ["READ"]}, "leave --operation out"),
        ([TOPIC], {"idempotent": True}, "--idempotent needs --producer"),
    ],
)
def test_what_makes_no_sense_is_refused(resources, given, sentence):
    with pytest.raises(click.UsageError, match=sentence):
        done(resources, *given.pop("operations", ()), **given)


def test_operations_are_written_as_kafka_does_or_otherwise():
    for text in ("DescribeConfigs", "DESCRIBE_CONFIGS", "describe-configs", "describeconfigs"):
        assert operation_of(text) == "DESCRIBE_CONFIGS"
    with pytest.raises(click.BadParameter, match="'Rea' is not an operation"):
        operation_of("Rea")


def test_a_resource_that_is_named_twice_is_one():
    assert resources_of(["a", "b", "a"], ["g"], [], ["User:u"], True) == [
        ("TOPIC", "a"),
        ("TOPIC", "b"),
        ("GROUP", "g"),
        ("USER", "User:u"),
        CLUSTER,
    ]
