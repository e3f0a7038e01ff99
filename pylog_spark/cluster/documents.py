"""Every document that pylog stores about a cluster: its path, its JSON, its version. Shared by all stores.

==========================  =====================================================================================
path                        JSON, version 1
==========================  =====================================================================================
``cluster``                 {"version": 1, "cluster_id": "22 characters"}
``topics/<name>``           {"version": 1, "name", "topic_id", "deleting": false, "configs": {name: text},
                            "partitions": [{"partition", "replicas": [], "leader", "leader_epoch", "isr": []}]}
``brokers/<id>/config``     {"version": 1, "configs": {name: text}}: changed while running; wins over the start's
==========================  =====================================================================================

Not guaranteed: that an older pylog reads a newer one's documents. A newer version is refused, never guessed at; an
unknown field of a known version is refused too, because dropping it at the next write would lose it silently.
"""

import json
from collections.abc import Mapping
from typing import Any

from pylog_spark.cluster.model import Partition, Topic

VERSION = 1

CLUSTER = "cluster"
TOPICS = "topics/"


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
    return _encode({"cluster_id": cluster_id})


def decode_cluster(data: bytes) -> str:
    """The cluster id. Raises `DocumentError`."""
    body = _decode(CLUSTER, data, {"cluster_id"})
    return _text(CLUSTER, body, "cluster_id")


def encode_topic(topic: Topic) -> bytes:
    """The document of one topic."""
    partitions = [
        {
            "partition": one.partition,
            "replicas": one.replicas,
            "leader": one.leader,
            "leader_epoch": one.leader_epoch,
            "isr": one.isr,
        }
        for one in topic.partitions
    ]
    return _encode(
        {
            "name": topic.name,
            "topic_id": topic.topic_id,
            "deleting": topic.deleting,
            "configs": dict(topic.configs),
            "partitions": partitions,
        }
    )


def decode_topic(path: str, data: bytes) -> Topic:
    """The topic stored at `path`. Raises `DocumentError`."""
    body = _decode(path, data, {"name", "topic_id", "deleting", "configs", "partitions"})
    name = _text(path, body, "name")
    if topic_path(name) != path:
        raise DocumentError(f"The document {path} says it is topic {name}: restore the right file from a copy.")
    try:
        partitions = tuple(
            Partition(one["partition"], tuple(one["replicas"]), one["leader"], one["leader_epoch"], tuple(one["isr"]))
            for one in body["partitions"]
        )
        configs = {str(key): str(value) for key, value in body["configs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise DocumentError(f"The document {path} is damaged ({error!r}): restore it from a copy.") from error
    if [one.partition for one in partitions] != list(range(len(partitions))):
        raise DocumentError(f"The document {path} does not number its partitions 0, 1, 2...: restore it from a copy.")
    return Topic(name, _text(path, body, "topic_id"), configs, partitions, bool(body["deleting"]))


def encode_broker_config(configs: Mapping[str, str]) -> bytes:
    """The document of settings changed while a broker ran."""
    return _encode({"configs": dict(configs)})


def decode_broker_config(path: str, data: bytes) -> dict[str, str]:
    """The changed settings stored at `path`. Raises `DocumentError`."""
    configs = _decode(path, data, {"configs"})["configs"]
    if not isinstance(configs, dict):
        raise DocumentError(f"The document {path} is damaged (configs is not an object): restore it from a copy.")
    return {str(key): str(value) for key, value in configs.items()}


def _encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": VERSION, **body}, separators=(",", ":")).encode()


def _decode(path: str, data: bytes, fields: set[str]) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise DocumentError(f"The document {path} is not JSON ({error}): restore it from a copy.") from error
    version = body.pop("version", None) if isinstance(body, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise DocumentError(
            f"The document {path} has version {version}, written by a newer pylog; this one reads up to {VERSION}: "
            "start the newer pylog."
        )
    if version != VERSION or not isinstance(body, dict):
        raise DocumentError(f"The document {path} is damaged (version {version}): restore it from a copy.")
    if body.keys() != fields:
        wrong = ", ".join(sorted(body.keys() ^ fields))
        raise DocumentError(f"The document {path} is damaged (missing or unknown: {wrong}): restore it from a copy.")
    return body


def _text(path: str, body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str):
        raise DocumentError(f"The document {path} is damaged ({name} is not text): restore it from a copy.")
    return value
