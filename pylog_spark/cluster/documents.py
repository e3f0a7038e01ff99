"""Every document that pylog stores about a cluster: its path, its JSON, its version. Shared by all stores.

==========================  =====================================================================================
path                        JSON
==========================  =====================================================================================
``cluster``                 {"version": 1, "cluster_id": "22 characters"}
``topics/<name>``           {"version": 1, "name", "topic_id", "deleting": false, "configs": {name: text},
                            "partitions": [{"partition", "replicas": [], "leader", "leader_epoch", "isr": []}]}; version 2 when
                            some have "partition_epoch", "adding": [], "removing": [] or "elr": [] that are not 0 or empty
``brokers/<id>/config``     {"version": 1, "configs": {name: text}}: changed while running; wins over the start's
``groups``                  {"version": 1, "groups": {id: {name: text}}}: settings of single groups; in a cluster from level 2 on
``security/...``            users, ACLs and quotas, see `cluster.security.documents`; in a cluster from level 3 on
==========================  =====================================================================================

Only in a store that several brokers share (an ephemeral document exists as long as its broker's session):

==========================  =====================================================================================
``features``                {"version": 1, "level"}: what all brokers of the cluster must understand (`cluster.features`)
``brokers/ids/<id>``        ephemeral {"version": 1, "host", "port", "rack", "level_min", "level_max", "min_isr",
                            "directory", "leaving"}; its creation is the broker's epoch. Other brokers reach it at "host" and
                            "port"; with listeners other than one called PLAINTEXT also "listeners": {name: [host, port]}
``controller``              ephemeral {"version": 1, "broker_id"}
``controller_epoch``        {"version": 1, "epoch"}: grows by one with each elected controller
``producer_ids``            {"version": 1, "next"}: the first id that no broker has taken
``known_brokers``           {"version": 1, "brokers": {id: {"host", "port", "rack"}}}: the brokers that have registered and were not
                            unregistered by hand (`cluster.known`); it may be missing, or lack brokers of an older pylog;
                            version 2 when some have "listeners" as well
``changes/c-<sequence>``    {"version": 1, "topics": [names], "brokers": bool, "groups": bool, "security": {"sequence", "paths"},
                            "token"}: what a write changed; kept for a while
==========================  =====================================================================================

Not guaranteed: that an older pylog reads what a cluster of a higher level holds (`cluster.features`). A newer version is refused, never guessed at; an
unknown field of a known version is refused too, because dropping it at the next write would lose it silently. Fields of
registrations and change notifications that a newer broker adds are ignored: those documents are never written again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pylog_spark.cluster.model import BrokerInfo, Endpoint, Partition, Topic

VERSION = 1
TOPIC_VERSION = 2
KNOWN_BROKERS_VERSION = 2
# How many fields a partition has in version 1.
_PARTITION_FIELDS = 5

#: For each level that this pylog understands, the newest version of a topic's document that such a cluster may hold.
TOPIC_VERSIONS = {1: TOPIC_VERSION, 2: TOPIC_VERSION, 3: TOPIC_VERSION}
#: From this level on brokers keep share groups together: requests 83 to 87 between them, `groups` in the shared store.
LEVEL_OF_SHARE_GROUPS = 2
#: From this level on all brokers heed users, ACLs and quotas (`cluster.security`), which may be stored only then.
LEVEL_OF_SECURITY = 3
#: The levels that this pylog understands, of stored documents and of requests between brokers. `features` has the cluster's level.
LEVEL_MIN = min(TOPIC_VERSIONS)
LEVEL_MAX = max(TOPIC_VERSIONS)

CLUSTER = "cluster"
FEATURES = "features"
GROUPS = "groups"
TOPICS = "topics/"
REGISTRATIONS = "brokers/ids/"
CONTROLLER = "controller"
CONTROLLER_EPOCH = "controller_epoch"
PRODUCER_IDS = "producer_ids"
KNOWN_BROKERS = "known_brokers"
CHANGES = "changes/"
SCRAM_USERS = "security/users/"
DECOY_KEY = "security/decoy_key"
#: What the paths of documents with secrets begin with: only brokers may read them.
PRIVATE = (SCRAM_USERS, DECOY_KEY)


class DocumentError(Exception):
    """A stored document cannot be read. `args[0]` is one sentence with the path and what to do."""


def topic_path(name: str) -> str:
    """Where the document of topic `name` is stored."""
    return TOPICS + name


def broker_config_path(node_id: int) -> str:
    """Where the changed settings of broker `node_id` are stored."""
    return f"brokers/{node_id}/config"


def encode_cluster(cluster_id: str) -> bytes:
    """The cluster document."""
    return encode_body({"cluster_id": cluster_id})


def decode_cluster(data: bytes) -> str:
    """The cluster id. Raises `DocumentError`."""
    body = decode_body(CLUSTER, data, {"cluster_id"})
    return _text(CLUSTER, body, "cluster_id")


def encode_topic(topic: Topic, level: int = LEVEL_MAX) -> bytes:
    """Encode a topic in the oldest version that has all its fields. Raises `DocumentError` when a cluster of `level` cannot read it."""
    partitions = [_partition_body(partition) for partition in topic.partitions]
    version = TOPIC_VERSION if any(len(body) > _PARTITION_FIELDS for body in partitions) else VERSION
    if version > TOPIC_VERSIONS[level]:
        raise DocumentError(
            f"Topic {topic.name} has fields that a cluster of level {level} cannot read: raise the level."
        )
    return encode_body(
        {
            "name": topic.name,
            "topic_id": topic.topic_id,
            "deleting": topic.deleting,
            "configs": dict(topic.configs),
            "partitions": partitions,
        },
        version,
    )


def _partition_body(partition: Partition) -> dict[str, Any]:
    rare = {
        "partition_epoch": partition.partition_epoch,
        "adding": partition.adding,
        "removing": partition.removing,
        "elr": partition.elr,
    }
    return {
        "partition": partition.partition,
        "replicas": partition.replicas,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "isr": partition.isr,
        **{name: value for name, value in rare.items() if value},
    }


def _partition(body: Mapping[str, Any]) -> Partition:
    unknown = body.keys() - {field.name for field in fields(Partition)}
    if unknown:
        raise KeyError(*unknown)
    return Partition(
        body["partition"],
        tuple(body["replicas"]),
        body["leader"],
        body["leader_epoch"],
        tuple(body["isr"]),
        body.get("partition_epoch", 0),
        *(tuple(body.get(name, ())) for name in ("adding", "removing", "elr")),
    )


def decode_topic(path: str, data: bytes) -> Topic:
    """The topic stored at `path`. Raises `DocumentError`."""
    body = decode_body(path, data, {"name", "topic_id", "deleting", "configs", "partitions"}, TOPIC_VERSION)
    name = _text(path, body, "name")
    if topic_path(name) != path:
        raise DocumentError(f"The document {path} says it is topic {name}: restore the right file from a copy.")
    try:
        partitions = tuple(_partition(partition) for partition in body["partitions"])
        configs = {str(key): str(value) for key, value in body["configs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise DocumentError(f"The document {path} is damaged ({error!r}): restore it from a copy.") from error
    if [partition.partition for partition in partitions] != list(range(len(partitions))):
        raise DocumentError(f"The document {path} does not number its partitions 0, 1, 2...: restore it from a copy.")
    return Topic(name, _text(path, body, "topic_id"), configs, partitions, bool(body["deleting"]))


def encode_broker_config(configs: Mapping[str, str]) -> bytes:
    """The document of settings changed while a broker ran."""
    return encode_body({"configs": dict(configs)})


def decode_broker_config(path: str, data: bytes) -> dict[str, str]:
    """The changed settings stored at `path`. Raises `DocumentError`."""
    configs = decode_body(path, data, {"configs"})["configs"]
    if not isinstance(configs, dict):
        raise DocumentError(f"The document {path} is damaged (configs is not an object): restore it from a copy.")
    return {str(key): str(value) for key, value in configs.items()}


def encode_groups(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    """The document of settings that single groups have."""
    return encode_body({"groups": {group: dict(configs) for group, configs in groups.items()}})


def decode_groups(data: bytes) -> dict[str, dict[str, str]]:
    """The settings of single groups. Raises `DocumentError`."""
    groups = decode_body(GROUPS, data, {"groups"})["groups"]
    try:
        return {str(group): {str(key): str(text) for key, text in own.items()} for group, own in groups.items()}
    except AttributeError as error:
        raise DocumentError(f"The document {GROUPS} is damaged ({error!r}): restore it from a copy.") from error


def encode_number(name: str, number: int) -> bytes:
    """A document of one number: `features` (level), `controller` (broker_id), `controller_epoch` (epoch), `producer_ids` (next)."""
    return encode_body({name: number})


def decode_number(path: str, data: bytes, name: str) -> int:
    """The number of such a document. Raises `DocumentError`."""
    value = decode_body(path, data, {name})[name]
    if not isinstance(value, int):
        raise DocumentError(f"The document {path} is damaged ({name} is not a number): restore it from a copy.")
    return value


def registration_path(broker_id: int) -> str:
    """Where broker `broker_id` is registered while it lives."""
    return f"{REGISTRATIONS}{broker_id}"


def encode_registration(broker: BrokerInfo, directory: str, leaving: bool) -> bytes:
    """The registration of a broker; its epoch is not in it. `directory` names its data directory."""
    return encode_body(
        {
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "level_min": broker.level_min,
            "level_max": broker.level_max,
            "min_isr": broker.min_isr,
            "directory": directory,
            "leaving": leaving,
            **_listeners_body(broker),
        }
    )


def decode_registration(path: str, data: bytes, epoch: int) -> tuple[BrokerInfo, str, bool]:
    """The broker registered at `path`, the name of its data directory, and whether it is being stopped."""
    body = decode_body(path, data, None)
    try:
        broker = BrokerInfo(
            int(path.rpartition("/")[2]),
            str(body["host"]),
            int(body["port"]),
            body["rack"],
            epoch,
            int(body["level_min"]),
            int(body["level_max"]),
            int(body["min_isr"]),
            _listeners(body),
        )
        return broker, str(body["directory"]), bool(body["leaving"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(
            f"The document {path} is damaged ({error!r}): stop that broker and start it again."
        ) from error


def encode_known_brokers(brokers: Mapping[int, BrokerInfo]) -> bytes:
    """The document of the brokers that belong to the cluster, dead or alive."""
    shown = {
        str(broker.id): {"host": broker.host, "port": broker.port, "rack": broker.rack, **_listeners_body(broker)}
        for broker in brokers.values()
    }
    version = KNOWN_BROKERS_VERSION if any(broker.listeners for broker in brokers.values()) else VERSION
    return encode_body({"brokers": shown}, version)


def _listeners_body(broker: BrokerInfo) -> dict[str, Any]:
    """The field of its listeners, where it has others than PLAINTEXT."""
    return {"listeners": dict(broker.listeners)} if broker.listeners else {}


def _listeners(body: Mapping[str, Any]) -> tuple[tuple[str, Endpoint], ...]:
    found = body.get("listeners", {}).items()
    return tuple(sorted((str(name), Endpoint(str(host), int(port))) for name, (host, port) in found))


def decode_known_brokers(data: bytes | None) -> dict[int, BrokerInfo]:
    """The brokers that belong to the cluster; none when there is no such document. Raises `DocumentError`."""
    if data is None:
        return {}
    body = decode_body(KNOWN_BROKERS, data, {"brokers"}, KNOWN_BROKERS_VERSION)["brokers"]
    try:
        found = {}
        for number, broker in body.items():
            if broker.keys() - {"listeners"} != {"host", "port", "rack"}:
                raise KeyError(*broker)
            host, port, rack = str(broker["host"]), int(broker["port"]), broker["rack"]
            found[int(number)] = BrokerInfo(int(number), host, port, rack, listeners=_listeners(broker))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DocumentError(
            f"The document {KNOWN_BROKERS} is damaged ({error!r}): restore it from a copy, or delete it and restart the brokers."
        ) from error
    return found


@dataclass(frozen=True, slots=True)
class ChangeNotification:
    """What a write changed.

    Attributes
    ----------
    topics : sequence of str
        The topics with other documents than before.
    brokers, groups : bool
        Whether documents about brokers changed, and whether the settings of groups.
    security : tuple of int and sequence of str, optional
        The documents of users, ACLs and quotas that changed, and the number of that change.
    """

    topics: Sequence[str] = ()
    brokers: bool = False
    groups: bool = False
    security: tuple[int, Sequence[str]] | None = None


def encode_change_notification(change: ChangeNotification, token: str) -> bytes:
    """Encode what a write changed. The `token` is unique."""
    more: dict[str, Any] = {"groups": True} if change.groups else {}
    if change.security is not None:
        sequence, paths = change.security
        more["security"] = {"sequence": sequence, "paths": list(paths)}
    return encode_body({"topics": list(change.topics), "brokers": change.brokers, **more, "token": token})


def decode_change_notification(path: str, data: bytes) -> ChangeNotification:
    """What a write changed. Raises `DocumentError`."""
    body = decode_body(path, data, None)
    security = body.get("security")
    try:
        changed = None if security is None else (int(security["sequence"]), [str(each) for each in security["paths"]])
        topics = [str(name) for name in body.get("topics", ())]
    except (KeyError, TypeError, ValueError) as error:
        raise DocumentError(f"The document {path} is damaged ({error!r}): restart the broker.") from error
    return ChangeNotification(topics, bool(body.get("brokers")), bool(body.get("groups")), changed)


def encode_body(body: Mapping[str, Any], version: int = VERSION) -> bytes:
    """A document of these fields."""
    return json.dumps({"version": version, **body}, separators=(",", ":")).encode()


def decode_body(path: str, data: bytes, expected: set[str] | None, newest: int = VERSION) -> dict[str, Any]:
    """The JSON at `path` without its version; with exactly the `expected` fields, if they are given."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise DocumentError(f"The document {path} is not JSON ({error}): restore it from a copy.") from error
    version = body.pop("version", None) if isinstance(body, dict) else None
    if isinstance(version, int) and version > newest:
        raise DocumentError(
            f"The document {path} has version {version}, written by a newer pylog; this one reads up to {newest}: "
            "start the newer pylog."
        )
    if not isinstance(version, int) or version < VERSION or not isinstance(body, dict):
        raise DocumentError(f"The document {path} is damaged (version {version}): restore it from a copy.")
    if expected is not None and body.keys() != expected:
        wrong = ", ".join(sorted(body.keys() ^ expected))
        raise DocumentError(f"The document {path} is damaged (missing or unknown: {wrong}): restore it from a copy.")
    return body


def _text(path: str, body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str):
        raise DocumentError(f"The document {path} is damaged ({name} is not text): restore it from a copy.")
    return value
