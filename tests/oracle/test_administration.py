"""DescribeAcls, AlterReplicaLogDirs, DescribeQuorum, ListConfigResources, UpdateFeatures, UnregisterBroker."""

from tests.oracle.compare import case
from tests.oracle.script import Answer, Script

ANY, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 1, 2, 4, 8, 16, 32
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
METADATA = "__cluster_metadata"
TIMES = ("last_fetch_timestamp", "last_caught_up_timestamp")


@case
def test_without_an_authorizer_there_are_no_rules_to_describe(s: Script) -> None:
    every = {"resource_type_filter": ANY, "pattern_type_filter": ANY, "operation": ANY, "permission_type": ANY}
    every |= {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    for version in range(1, 4):
        s.call("DescribeAcls", version, **every)
        s.says("SECURITY_DISABLED")


def move(s: Script, path: str, topic: str, *partitions: int, version: int = 2) -> None:
    """AlterReplicaLogDirs of partitions of a topic."""
    topics = [{"name": topic, "partitions": list(partitions)}]
    s.call("AlterReplicaLogDirs", version, dirs=[{"path": path, "topics": topics}])


def directory(s: Script) -> str:
    """The broker's data directory."""
    return str(s.quietly("DescribeLogDirs", topics=[])["results"][0]["log_dir"])


@case
def test_a_replica_that_is_in_the_directory_asked_for_stays_there(s: Script) -> None:
    topic = s.topic(2)
    for version in (1, 2):
        move(s, directory(s), topic, 0, 1, version=version)
        s.says("NONE")


@case
def test_a_directory_that_a_broker_does_not_have_takes_no_replica(s: Script) -> None:
    topic = s.topic()
    move(s, "/no/such/directory", topic, 0)
    s.says("LOG_DIR_NOT_FOUND")
    move(s, "/no/such/directory", s.new("absent"), 0)
    s.says("LOG_DIR_NOT_FOUND")


@case
def test_a_replica_that_is_not_there_cannot_be_moved(s: Script) -> None:
    move(s, directory(s), s.new("absent"), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    move(s, directory(s), s.topic(), 0, 7)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")


def quorum(s: Script, topic: str, *partitions: int, version: int = 2) -> None:
    """DescribeQuorum of partitions of a topic."""
    asked = [{"partition_index": number} for number in partitions]
    s.call("DescribeQuorum", version, topics=[{"topic_name": topic, "partitions": asked}])


@case
def test_the_controller_leads_the_quorum_and_votes_alone(s: Script) -> None:
    for version in range(3):
        quorum(s, METADATA, 0, version=version)
        s.says("NONE")
        s.holds(leader_id=1, replica_id=1)
        # Of the log of metadata, which is Kafka's alone, and of its controllers' listener.
        s.without("leader_epoch", "high_watermark", "log_end_offset", "replica_directory_id", *TIMES, "nodes")


@case
def test_nothing_else_has_a_quorum(s: Script) -> None:
    quorum(s, s.topic(), 0)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    quorum(s, METADATA, 1)
    s.says("UNKNOWN_TOPIC_OR_PARTITION")
    quorum(s, METADATA, 0, 1)
    s.says("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION")


@case
def test_resources_with_settings_are_listed_by_type(s: Script) -> None:
    s.call("ListConfigResources", 1, resource_types=[BROKER])
    s.says("NONE")
    s.holds(resource_name="1", resource_type=BROKER)
    s.call("ListConfigResources", 1, resource_types=[CLIENT_METRICS])
    s.says("NONE")
    s.call("ListConfigResources", 0)
    s.says("NONE")
    # A group of that name gets a setting of its own, without which it is not listed.
    name = s.topic()
    own = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    group = {"resource_type": GROUP, "resource_name": name, "configs": [own]}
    s.quietly("IncrementalAlterConfigs", resources=[group], validate_only=False)

    def mine(answer: Answer) -> list[Answer]:
        return [resource for resource in answer["config_resources"] if resource["resource_name"] == name]

    for kind in (TOPIC, GROUP):
        # Apache Kafka's broker learns of a group's setting a moment after its controller has answered.
        listed = s.until(lambda answer: bool(mine(answer)), "ListConfigResources", 1, resource_types=[kind])
        s.transcript[-1] = (f"ListConfigResources of type {kind}", mine(listed))
        s.holds(resource_name=name, resource_type=kind)


@case
def test_loggers_of_brokers_are_resources(s: Script) -> None:
    s.call("ListConfigResources", 1, resource_types=[BROKER_LOGGER])
    s.says("NONE")
    s.holds(resource_name="1", resource_type=BROKER_LOGGER)


@case
def test_a_type_of_resource_that_nobody_knows_cannot_be_listed(s: Script) -> None:
    for kind in (0, 3, 99):
        s.call("ListConfigResources", 1, resource_types=[TOPIC, kind])
        s.says("UNSUPPORTED_VERSION")


def update(s: Script, *updates: tuple[str, int, int], version: int = 2, dry: bool = False) -> None:
    """UpdateFeatures: (feature, level, type of update)."""
    asked = [{"feature": feature, "max_version_level": level, "upgrade_type": kind} for feature, level, kind in updates]
    s.call("UpdateFeatures", version, feature_updates=asked, timeout_ms=30_000, validate_only=dry)


@case
def test_a_feature_that_does_not_exist_has_no_level(s: Script) -> None:
    for version in (0, 1, 2):
        update(s, ("no.such.feature", 1, UPGRADE), version=version)
        s.says("INVALID_UPDATE_VERSION")


@case
def test_a_level_that_the_broker_does_not_support_is_an_invalid_version(s: Script) -> None:
    for level in (99, -1):
        update(s, ("transaction.version", level, UPGRADE))
        s.says("INVALID_UPDATE_VERSION")


@case
def test_a_level_is_not_lowered_by_an_upgrade_nor_raised_by_a_downgrade(s: Script) -> None:
    update(s, ("transaction.version", 1, UPGRADE))
    s.says("INVALID_UPDATE_VERSION")
    update(s, ("transaction.version", 99, SAFE_DOWNGRADE))
    s.says("INVALID_UPDATE_VERSION")
    update(s, ("transaction.version", 2, 7))
    s.says("INVALID_UPDATE_VERSION")


@case
def test_a_level_that_the_feature_has_already_is_no_change(s: Script) -> None:
    for version in (1, 2):
        update(s, ("transaction.version", 2, UPGRADE), version=version)
        s.says("NONE")
    update(s, ("transaction.version", 2, UPGRADE), ("group.version", 1, UPGRADE), dry=True)
    s.says("NONE")


@case
def test_no_feature_changes_when_one_cannot(s: Script) -> None:
    update(s, ("group.version", 1, UPGRADE), ("no.such.feature", 1, UPGRADE))
    s.says("INVALID_UPDATE_VERSION")


@case
def test_a_broker_that_is_not_registered_cannot_be_unregistered(s: Script) -> None:
    s.call("UnregisterBroker", 0, broker_id=77)
    s.says("BROKER_ID_NOT_REGISTERED")
