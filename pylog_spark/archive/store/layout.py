"""Where the objects of an archive are, and its two small documents: pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pylog_spark.archive.store.manifest import ManifestError, decoded

#: The object that says that a folder is an archive.
ROOT = "pylog-archive.json"
ROOT_FORMAT = "pylog-archive-store"
TOPICS = "topics"
CUTS = "cuts"
TOPIC = "topic.json"
TOPIC_FORMAT = "pylog-archive-topic"
VERSION = 1
#: In the place of the id of a topic whose brokers give none.
NO_ID = "none"
SEGMENT_SUFFIX = ".pylog.zst"


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic of an archive.

    Attributes
    ----------
    topic, topic_id : str
        Its name and id; the id is empty when its brokers give none.
    cluster_id : str
        Where it comes from; empty when that cluster has none.
    partitions : int
        How many it had when it was copied last.
    configs : mapping of str to str
        The settings that were given to it.
    created_at_ms : int
        When it was archived first, milliseconds since 1970. Of two topics with one name the later one is read.
    """

    topic: str
    topic_id: str
    cluster_id: str
    partitions: int
    configs: Mapping[str, str]
    created_at_ms: int


def topic_folder(topic: str, topic_id: str) -> str:
    """The folder of a topic."""
    return f"{TOPICS}/{topic}/{topic_id or NO_ID}"


def partition_folder(topic: str, topic_id: str, partition: int) -> str:
    """The folder of a partition."""
    return f"{topic_folder(topic, topic_id)}/{partition}"


def root_document() -> bytes:
    """The content of `ROOT`."""
    return json.dumps({"format": ROOT_FORMAT, "version": VERSION}).encode() + b"\n"


def check_root(data: bytes) -> None:
    """Raise `ManifestError` when this reads no such archive."""
    decoded(data, ROOT_FORMAT, VERSION)


def encode_topic(topic: StoredTopic) -> bytes:
    """The bytes of a topic's document."""
    return json.dumps({"format": TOPIC_FORMAT, "version": VERSION, **asdict(topic)}, sort_keys=True).encode() + b"\n"


def decode_topic(data: bytes) -> StoredTopic:
    """Read a topic's document. Raises `ManifestError`."""
    found = decoded(data, TOPIC_FORMAT, VERSION)
    try:
        return StoredTopic(
            str(found["topic"]),
            str(found["topic_id"]),
            str(found["cluster_id"]),
            int(found["partitions"]),
            {str(name): str(value) for name, value in found["configs"].items()},
            int(found["created_at_ms"]),
        )
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise ManifestError(f"a topic's document lacks {error}") from None
