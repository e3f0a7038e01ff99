"""The documents of consumer groups without a coordinator in the shared store (Kafka paper, NetDB 2011, section 3.2).

=============================================  ===========================================================================
path                                           document
=============================================  ===========================================================================
``consumers/<group>/ids/<consumer>``           ephemeral {"version": 1, "topics": [names]}: a member and its topics
``consumers/<group>/owners/<topic>/<part>``    ephemeral: the name of the consumer that owns the partition
``consumers/<group>/offsets/<topic>/<part>``   the offset of the next record to read, in decimal digits; stays
=============================================  ===========================================================================

The format is that of Kafka's first consumers, so that tools of that time and people with a ZooKeeper shell can read it.
"""

import json
import re
from collections.abc import Collection

from pylog_spark.cluster.documents import DocumentError
from pylog_spark.topic_partition import TopicPartition

_VERSION = 1
# The same rule as for a topic's name, since it becomes one segment of a path.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_name(text: str) -> bool:
    """Whether `text` may name a group or a consumer."""
    return _NAME.fullmatch(text) is not None and text not in (".", "..")


def members_path(group: str) -> str:
    """The parent of the registrations of a group's members."""
    return f"consumers/{group}/ids"


def member_path(group: str, consumer: str) -> str:
    """The path of a member's registration."""
    return f"{members_path(group)}/{consumer}"


def owners_path(group: str, topic: str) -> str:
    """The parent of the owners of a topic's partitions."""
    return f"consumers/{group}/owners/{topic}"


def owner_path(group: str, partition: TopicPartition) -> str:
    """The path of a partition's owner."""
    return f"{owners_path(group, partition.topic)}/{partition.partition}"


def offset_path(group: str, partition: TopicPartition) -> str:
    """The path of a group's offset of a partition."""
    return f"consumers/{group}/offsets/{partition.topic}/{partition.partition}"


def encode_member(topics: Collection[str]) -> bytes:
    """Encode a member's registration."""
    return json.dumps({"version": _VERSION, "topics": sorted(topics)}, separators=(",", ":")).encode()


def decode_member(path: str, data: bytes) -> frozenset[str]:
    """Decode the topics of a registration; unknown fields are ignored. Raises `DocumentError`."""
    try:
        body = json.loads(data)
        version, topics = body["version"], body["topics"]
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"The registration {path} cannot be read ({error!r}): stop that consumer.") from error
    if version != _VERSION or not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise DocumentError(f"The registration {path} has version {version}, this pylog reads {_VERSION}: stop it.")
    return frozenset(topics)


def encode_owner(consumer: str) -> bytes:
    """Encode an owner."""
    return consumer.encode()


def encode_offset(offset: int) -> bytes:
    """Encode an offset."""
    return str(offset).encode()


def decode_offset(path: str, data: bytes) -> int:
    """Decode the offset stored at `path`. Raises `DocumentError`."""
    if not data.isdigit():
        raise DocumentError(f"The offset {path} is {data[:40]!r} and not a number: correct or delete it.")
    return int(data)
