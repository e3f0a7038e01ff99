"""Refuse a data directory of Apache Kafka, before anything is written into it.

Apache Kafka keeps records in the same files, but topics, settings and ids in a log of its own, so its directory is refused with
a sentence that says what to do instead. It is recognised by its ``meta.properties``, which begins with another comment when pylog wrote
it. The native half refuses a directory whose ``meta.properties`` names no broker at all.
"""

import os

_META = "meta.properties"
_OURS = "#pylog"
_SAYS_WHOSE = ("cluster.id=", "node.id=", "broker.id=")


def belongs_to_kafka(data_dir: str) -> bool:
    """Whether a broker of Apache Kafka has made `data_dir`."""
    try:
        with open(os.path.join(data_dir, _META), encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return False
    return _OURS not in lines and any(line.startswith(_SAYS_WHOSE) for line in lines)


def sentence_for_kafka(data_dir: str) -> str:
    """Give the sentence that says what to do with such a directory."""
    return (
        f"The data directory {data_dir} belongs to Apache Kafka, which keeps topics and settings in other files than pylog; nothing in "
        'it was changed. Start Kafka on it and read it with format("pylog") at Kafka\'s address, or copy the topics from there '
        "to a pylog broker; give pylog a directory of its own."
    )
