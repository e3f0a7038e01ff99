"""A broker of the next version, run in its place: ``python -m tests.cluster.next_version broker ...``.

It is this version with what a next one adds by the rules of `cluster.features`: it understands one level more; in a cluster of
that level, and only there, it writes topics in a newer version with a field that this version does not know; and it says
in its registration what this version passes over.
"""

import json
import sys
from typing import Any

from pylog_spark.cluster import documents
from pylog_spark.cluster.model import BrokerInfo, Topic

LEVEL = documents.LEVEL_MAX + 1
VERSION = documents.TOPIC_VERSION + 1
FIELD = "since_the_next_version"
PROGRAM = (sys.executable, "-m", "tests.cluster.next_version")

_encode_topic, _decode_topic = documents.encode_topic, documents.decode_topic
_encode_registration = documents.encode_registration


def encode_topic(topic: Topic, level: int = LEVEL) -> bytes:
    """As this version below its level."""
    if level < LEVEL:
        return _encode_topic(topic, level)
    return json.dumps({**json.loads(_encode_topic(topic)), "version": VERSION, FIELD: True}).encode()


def decode_topic(path: str, data: bytes) -> Topic:
    """Every version."""
    body: dict[str, Any] = json.loads(data)
    if body["version"] == VERSION:
        assert body.pop(FIELD)
        body["version"] = documents.TOPIC_VERSION
    return _decode_topic(path, json.dumps(body).encode())


def encode_registration(broker: BrokerInfo, directory: str, leaving: bool) -> bytes:
    """With something more."""
    return json.dumps({**json.loads(_encode_registration(broker, directory, leaving)), FIELD: True}).encode()


def main() -> None:
    """Run the next version."""
    documents.LEVEL_MAX = LEVEL
    documents.encode_topic, documents.decode_topic = encode_topic, decode_topic
    documents.encode_registration = encode_registration
    from pylog_spark.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
