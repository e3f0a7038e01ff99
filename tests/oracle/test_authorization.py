"""Who may do what: Apache Kafka with its StandardAuthorizer and pylog with the same ACLs, asked the same by the same client.

Each case is a set of ACLs under which all of `REQUESTS` are sent, about a topic, group and transactional id called "mine" and about
others. The client is `User:ANONYMOUS` on both sides. Texts and the order of answers are not compared, what changes with time neither.
"""

import json
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from pylog_spark.broker.process import Broker, start_broker
from pylog_spark.testing.process import free_ports
from tests.harness import waiting
from tests.harness.kafka import KAFKA_SETTINGS, SHARED_SETTINGS
from tests.oracle.batches import batch
from tests.oracle.compare import Brokers
from tests.oracle.script import Script

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CLIENT = "User:ANONYMOUS"
CLUSTER = "kafka-cluster"
UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"
_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="it" user_admin="it";'
)
_UNTIL_S, _AGAIN_S = 60, 0.01

#: permission, operation, resource type, pattern type, name, and then principal and host where they are others.
Acl = tuple[str, ...]
#: Everything of every type.
ALL: tuple[Acl, ...] = tuple(
    ("ALLOW", "ALL", kind, "LITERAL", CLUSTER if kind == "CLUSTER" else "*")
    for kind in ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID")
)


class Guarded:
    """Both brokers with an authorizer, and how their ACLs are exchanged."""

    def __init__(self, kafka: str, admin: str, pylog: Broker) -> None:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
        self._admin = AdminClient({"bootstrap.servers": admin, "sasl.password": "it", **login})
        self._pylog = pylog
        self._kafka = kafka

    def brokers(self) -> Brokers:
        """Their addresses."""
        return Brokers(self._kafka, self._pylog.bootstrap_servers)

    def apply(self, acls: tuple[Acl, ...], *, to_kafka: bool) -> None:
        """Exchange all ACLs; they hold when this returns."""
        if to_kafka:
            self._apply_to_kafka([_binding(acl) for acl in acls])
        else:
            documents = [_document(acl) for acl in acls]
            self._pylog._native.apply_security(json.dumps({"scram": [], "acls": documents, "quotas": []}))

    def _apply_to_kafka(self, wanted: list[AclBinding]) -> None:
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for deleted in self._admin.delete_acls([every]).values():
            deleted.result()
        if wanted:
            for created in self._admin.create_acls(wanted).values():
                created.result()
        waiting.until(
            lambda: set(self._admin.describe_acls(every).result()) == set(wanted), "the ACLs hold", _UNTIL_S, _AGAIN_S
        )


def _named(acl: Acl) -> tuple[str, ...]:
    permission, operation, kind, pattern, name, *who = acl
    principal, host = (*who, CLIENT, "*")[:2] if len(who) < 2 else who
    return permission, operation, kind, pattern, name, principal, host


def _binding(acl: Acl) -> AclBinding:
    permission, operation, kind, pattern, name, principal, host = _named(acl)
    # librdkafka calls the cluster's resource a broker.
    resource = {"CLUSTER": ResourceType.BROKER}.get(kind) or ResourceType[kind]
    return AclBinding(
        resource, name, ResourcePatternType[pattern], principal, host, AclOperation[operation],
        AclPermissionType[permission],
    )  # fmt: skip


def _document(acl: Acl) -> dict[str, str]:
    permission, operation, kind, pattern, name, principal, host = _named(acl)
    return {
        "permission": permission, "operation": operation, "resource_type": kind, "pattern_type": pattern,
        "resource_name": name, "principal": principal, "host": host,
    }  # fmt: skip


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Both, running, with all that cases need to be there."""
    from tests.peers.kafka import KafkaBroker

    port, admin, controller = free_ports(3)
    settings = {
        **KAFKA_SETTINGS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},ADMIN://127.0.0.1:{admin}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ADMIN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "ADMIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.admin.plain.sasl.jaas.config": _LOGIN,
        "listener.name.controller.plain.sasl.jaas.config": _LOGIN,
    }
    ours = {name.replace(".", "_"): value for name, value in SHARED_SETTINGS.items()}
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"), settings, heap="512m", port=port, quick=True)
    pylog = start_broker(tmp_path_factory.mktemp("pylog"), authorizer_class_name=AUTHORIZER, **ours)
    with kafka, pylog:
        both = Guarded(kafka.bootstrap_servers, f"127.0.0.1:{admin}", pylog)
        both.apply(ALL, to_kafka=True)
        both.apply(ALL, to_kafka=False)
        both.brokers().warmed_up()
        yield both


class Names:
    """What requests are about: a topic, group and transactional id that the ACLs name, and others."""

    def __init__(self, script: Script) -> None:
        self.mine, self.other = script.topic(), script.topic()
        self.ids = {topic: script.topic_id(topic) for topic in (self.mine, self.other)}
        self.missing = self.mine + "-missing"
        for group in (self.mine, self.other):
            topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]}
                      for topic in (self.mine, self.other)]  # fmt: skip
            script.quietly("OffsetCommit", 8, group_id=group, topics=topics)
            script.until_good("InitProducerId", 4, transactional_id=group, transaction_timeout_ms=60_000)
            script.transcript.pop()

    def both(self) -> tuple[str, str]:
        """The name that the ACLs may name, and the other."""
        return self.mine, self.other

    def all(self) -> tuple[str, str, str]:
        """Also one of which nothing is there."""
        return self.mine, self.other, self.missing


def _records(s: Script, n: Names) -> None:
    for topic in n.all():
        s.call(
            "Produce",
            9,
            acks=1,
            timeout_ms=1000,
            topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": batch("x")}]}],
        )
        s.call(
            "Fetch",
            12,
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                {"topic": topic, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100_000}]}
            ],
        )
        s.call("ListOffsets", 7, topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}])
        s.call(
            "OffsetForLeaderEpoch",
            4,
            replica_id=-1,
            topics=[{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        )
        s.call(
            "DeleteRecords",
            2,
            timeout_ms=1000,
            topics=[{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
        )
        s.call("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": [0]}])
    for topic_id in (*n.ids.values(), UNKNOWN_ID):
        s.call(
            "Fetch",
            13,
            max_wait_ms=0,
            min_bytes=0,
            topics=[
                {"topic_id": topic_id, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}
            ],
        )
        s.call(
            "Produce",
            13,
            acks=1,
            timeout_ms=1000,
            topic_data=[{"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch("x")}]}],
        )


def _metadata(s: Script, n: Names) -> None:
    for creates in (False, True):
        s.call(
            "Metadata",
            9,
            allow_auto_topic_creation=creates,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
            topics=[{"name": name} for name in n.both()],
        )
    s.call("Metadata", 12, topics=[{"name": n.missing}], allow_auto_topic_creation=False)
    s.call("Metadata", 12, topics=[{"name": None, "topic_id": one} for one in n.ids.values()])
    s.call("DescribeTopicPartitions", 0, topics=[{"name": name} for name in n.all()])
    s.call("DescribeCluster", 0, include_cluster_authorized_operations=True)
    s.without("brokers")
    for name in n.all():
        for key_type in (0, 1):
            s.call("FindCoordinator", 4, key_type=key_type, coordinator_keys=[name])


def _groups(s: Script, n: Names) -> None:
    for group in n.both():
        s.call("JoinGroup", 3, group_id=group, session_timeout_ms=1)
        s.without("member_id")
        s.call("SyncGroup", 3, group_id=group, generation_id=1, member_id="m")
        s.call("Heartbeat", 3, group_id=group, generation_id=1, member_id="m")
        s.call("LeaveGroup", 3, group_id=group, members=[{"member_id": "m"}])
        s.call(
            "OffsetCommit",
            8,
            group_id=group,
            topics=[
                {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]} for topic in n.all()
            ],
        )
        s.call("OffsetFetch", 8, groups=[{"group_id": group, "topics": None}])
        s.call(
            "OffsetFetch",
            8,
            groups=[{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]} for topic in n.both()]}],
        )
        s.call("OffsetFetch", 7, group_id=group, topics=[{"name": n.mine, "partition_indexes": [0]}])
        s.call(
            "OffsetDelete",
            0,
            group_id=group,
            topics=[{"name": topic, "partitions": [{"partition_index": 1}]} for topic in n.both()],
        )
        s.call("DescribeGroups", 5, groups=[group], include_authorized_operations=True)
        s.call("ConsumerGroupDescribe", 0, group_ids=[group])
        s.call("ConsumerGroupHeartbeat", 0, group_id=group + "-new", member_id="", member_epoch=-1)
    s.call("ListGroups", 4)
    s.only_mine()
    s.call("DeleteGroups", 2, groups_names=[n.missing])


def _transactions(s: Script, n: Names) -> None:
    for name in n.both():
        s.call("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=0)
        s.call(
            "AddPartitionsToTxn",
            3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=77,
            v3_and_below_topics=[{"name": topic, "partitions": [0]} for topic in n.both()],
        )
        s.call("AddOffsetsToTxn", 3, transactional_id=name, producer_id=77, group_id=n.mine)
        s.call("EndTxn", 3, transactional_id=name, producer_id=77)
        s.call("DescribeTransactions", 0, transactional_ids=[name])
        for group in n.both():
            s.call(
                "TxnOffsetCommit",
                3,
                transactional_id=name,
                group_id=group,
                producer_id=77,
                topics=[
                    {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]} for topic in n.both()
                ],
            )
    s.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
    s.without("producer_id")
    s.call("ListTransactions", 0)
    s.only_mine()
    s.call(
        "WriteTxnMarkers", 1, markers=[{"producer_id": 77, "topics": [{"name": n.missing, "partition_indexes": [0]}]}]
    )
    s.call(
        "AddPartitionsToTxn",
        4,
        transactions=[
            {
                "transactional_id": n.mine,
                "producer_id": 77,
                "verify_only": True,
                "topics": [{"name": n.mine, "partitions": [0]}],
            }
        ],
    )


def _administration(s: Script, n: Names) -> None:
    for name in n.both():
        s.call(
            "CreateTopics",
            7,
            timeout_ms=5000,
            validate_only=True,
            topics=[{"name": name + "-new", "num_partitions": 1, "replication_factor": 1}],
        )
        s.without("configs")
        s.call("CreatePartitions", 3, timeout_ms=5000, validate_only=True, topics=[{"name": name, "count": 2}])
        for kind, resource in ((2, name), (32, name)):
            s.call("DescribeConfigs", 4, resources=[{"resource_type": kind, "resource_name": resource}])
            s.without("configs")
            s.call(
                "IncrementalAlterConfigs",
                1,
                validate_only=True,
                resources=[{"resource_type": kind, "resource_name": resource}],
            )
        s.call("AlterConfigs", 2, validate_only=True, resources=[{"resource_type": 2, "resource_name": name}])
    s.call("DeleteTopics", 6, timeout_ms=5000, topics=[{"name": n.missing}])
    s.call("DeleteTopics", 5, timeout_ms=5000, topic_names=[n.missing])
    s.call("DescribeConfigs", 4, resources=[{"resource_type": 4, "resource_name": "1"}])
    s.without("configs")
    s.call("IncrementalAlterConfigs", 1, validate_only=True, resources=[{"resource_type": 4, "resource_name": "1"}])
    s.call("ListPartitionReassignments", 0, timeout_ms=5000, topics=[])
    s.call("AlterPartitionReassignments", 0, timeout_ms=5000, topics=[])
    s.call("ElectLeaders", 2, timeout_ms=5000, topic_partitions=[])
    s.call("UpdateFeatures", 1, timeout_ms=5000, validate_only=True, feature_updates=[])
    s.call("DescribeLogDirs", 4, topics=[])
    s.without("results")
    s.call("UnregisterBroker", 0, broker_id=99)
    s.call(
        "DescribeAcls",
        3,
        resource_type_filter=3,
        resource_name_filter="nobody's",
        pattern_type_filter=3,
        operation=1,
        permission_type=1,
    )
    s.call("ListConfigResources", 1, resource_types=[16])


REQUESTS = (_records, _metadata, _groups, _transactions, _administration)


def rights(*acls: Acl) -> Callable[[Guarded], None]:
    """A test that sends all requests under `acls`, in whose names MINE stands for this case's."""

    def test(guarded: Guarded, request: pytest.FixtureRequest) -> None:
        def script(s: Script) -> None:
            guarded.apply(ALL, to_kafka=s.is_kafka)
            names = Names(s)
            mine = [tuple(word.replace("MINE", names.mine) for word in acl) for acl in acls]
            guarded.apply(tuple(mine), to_kafka=s.is_kafka)
            for requests in REQUESTS:
                requests(s, names)

        guarded.brokers().compare(request.node.name, script)

    return test


def _of(kind: str, *operations: str, name: str = "MINE", pattern: str = "LITERAL") -> tuple[Acl, ...]:
    return tuple(("ALLOW", operation, kind, pattern, name) for operation in operations)


test_nobody_may_do_anything_without_an_acl = rights()
test_who_may_do_everything = rights(*ALL)
test_everybody_may_read_a_topic_and_a_group = rights(
    ("ALLOW", "READ", "TOPIC", "LITERAL", "MINE", "User:*"), ("ALLOW", "READ", "GROUP", "LITERAL", "MINE", "User:*")
)
test_somebody_else_may_do_everything = rights(
    *((*acl, "User:alice") for acl in ALL), ("ALLOW", "READ", "TOPIC", "LITERAL", "MINE", "Group:ANONYMOUS")
)
test_from_another_host_everything_is_allowed = rights(*((*acl, CLIENT, "10.9.8.7") for acl in ALL))
test_from_this_host_everything_is_allowed = rights(*((*acl, CLIENT, "127.0.0.1") for acl in ALL))
test_a_prefix_of_topics_and_groups = rights(
    *_of("TOPIC", "ALL", pattern="PREFIXED"), *_of("GROUP", "DESCRIBE", "DELETE", pattern="PREFIXED")
)
test_denials_among_everything = rights(
    *ALL,
    ("DENY", "WRITE", "TOPIC", "LITERAL", "MINE"),
    ("DENY", "DESCRIBE", "GROUP", "PREFIXED", "MINE"),
    ("DENY", "WRITE", "TRANSACTIONAL_ID", "LITERAL", "*"),
    ("DENY", "ALTER", "CLUSTER", "LITERAL", CLUSTER, "User:*"),
)
test_a_denial_of_describe_keeps_no_reader_out = rights(
    *_of("TOPIC", "READ", "WRITE"), ("DENY", "DESCRIBE", "TOPIC", "LITERAL", "MINE"), *_of("GROUP", "READ")
)
test_who_may_describe_the_cluster = rights(*_of("CLUSTER", "DESCRIBE", "DESCRIBE_CONFIGS", name=CLUSTER))
test_who_may_alter_the_cluster = rights(*_of("CLUSTER", "ALTER", "ALTER_CONFIGS", name=CLUSTER))
test_who_may_act_as_a_broker = rights(*_of("CLUSTER", "CLUSTER_ACTION", name=CLUSTER))
test_who_may_create_and_write_idempotently = rights(
    *_of("CLUSTER", "CREATE", "IDEMPOTENT_WRITE", name=CLUSTER), *_of("TOPIC", "DESCRIBE", name="*")
)
test_a_producer_in_transactions = rights(
    *_of("TOPIC", "WRITE"), *_of("TRANSACTIONAL_ID", "WRITE"), *_of("GROUP", "READ", name="*")
)
test_who_may_make_and_delete_topics_of_a_name = rights(
    *_of("TOPIC", "CREATE", "DELETE", "ALTER", pattern="PREFIXED"), *_of("GROUP", "DELETE")
)
test_who_may_look_at_settings = rights(
    *_of("TOPIC", "DESCRIBE_CONFIGS"), *_of("GROUP", "ALTER_CONFIGS"), *_of("TOPIC", "ALTER_CONFIGS", name="*")
)
test_writing_to_any_topic_lets_idempotent_producers_in = rights(*_of("TOPIC", "WRITE"))
test_writing_to_a_topic_that_is_denied_lets_none_in = rights(
    *_of("TOPIC", "WRITE"), ("DENY", "WRITE", "TOPIC", "PREFIXED", "MINE")
)
