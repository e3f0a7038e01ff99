"""The registries of consumer groups that keep themselves in a shared store (Kafka paper, NetDB 2011, section 3.2).

=============================================  ===========================================================================
path                                           what is there
=============================================  ===========================================================================
``consumers/<group>/ids/<consumer>``           ephemeral {"version": 1, "topics": [names]}: a member and what it subscribes to
``consumers/<group>/owners/<topic>/<part>``    ephemeral: the text of the consumer that owns the partition
``consumers/<group>/offsets/<topic>/<part>``   the offset of the next record to read, in decimal digits; stays
=============================================  ===========================================================================

The texts are those of Kafka's first consumers, so that tools of that time and people with a ZooKeeper shell can read them.
"""

import json
import re
from collections.abc import Collection

from pylog_spark.cluster.documents import DocumentError
from pylog_spark.topic_partition import TopicPartition

_VERSION = 1
# As for a topic: it becomes one segment of a path.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_name(text: str) -> bool:
    """Whether `text` may name a group or a consumer."""
    return _NAME.fullmatch(text) is not None and text not in (".", "..")


def members_path(group: str) -> str:
    """Where the members of a group are registered."""
    return f"consumers/{group}/ids"


def member_path(group: str, consumer: str) -> str:
    """Where one member is registered."""
    return f"{members_path(group)}/{consumer}"


def owners_path(group: str, topic: str) -> str:
    """Where the owners of a topic's partitions are."""
    return f"consumers/{group}/owners/{topic}"


def owner_path(group: str, partition: TopicPartition) -> str:
    """Where the owner of a partition is."""
    return f"{owners_path(group, partition.topic)}/{partition.partition}"


def offset_path(group: str, partition: TopicPartition) -> str:
    """Where a group's offset of a partition is."""
    return f"consumers/{group}/offsets/{partition.topic}/{partition.partition}"


def encode_member(topics: Collection[str]) -> bytes:
    """A member's registration."""
    return json.dumps({"version": _VERSION, "topics": sorted(topics)}, separators=(",", ":")).encode()


def decode_member(path: str, data: bytes) -> frozenset[str]:
    """The topics of a registration; further fields are passed over. Raises `DocumentError`."""
    try:
        body = json.loads(data)
        version, topics = body["version"], body["topics"]
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"The registration {path} cannot be read ({error!r}): stop that consumer.") from error
    if version != _VERSION or not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise DocumentError(f"The registration {path} has version {version}, this pylog reads {_VERSION}: stop it.")
    return frozenset(topics)


def encode_owner(consumer: str) -> bytes:
    """An owner."""
    return consumer.encode()


def encode_offset(offset: int) -> bytes:
    """An offset."""
    return str(offset).encode()


def decode_offset(path: str, data: bytes) -> int:
    """The offset stored at `path`. Raises `DocumentError`."""
    if not data.isdigit():
        raise DocumentError(f"The offset {path} is {data[:40]!r} and not a number: correct or delete it.")
    return int(data)
