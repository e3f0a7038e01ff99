"""Directories of partitions that this broker does not hold any more, because the cluster changed while it was down.

If a topic was deleted and created again, or the replica moved to other brokers, the directory is removed: the stored document is
newer than the directory. A topic without a document was deleted, too, but with a wrong or restored ZooKeeper it would look the same. So
its directories are only renamed, to ``<topic>-<partition>.<id>-stray`` as in Kafka, and named in the log.

Called before the topics are served, by the broker that holds the lock of the data directory.
"""

import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Mapping

from pylog_spark.cluster.model import Topic

log = logging.getLogger("pylog.broker.storage")

_PARTITION = re.compile(r"(.+)-(\d+)")
_TOPIC_ID = re.compile(r"^topic_id:\s*(\S+)", re.MULTILINE)
# A directory's name has room for 255 bytes.
_NAME_MAX = 255
_NAMED = 5


def put_aside(data_dir: str, topics: Mapping[str, Topic], node_id: int) -> tuple[list[str], list[str]]:
    """Remove or rename the directories that do not belong to `topics`. Returns the names of the removed and of the renamed ones."""
    removed, renamed = [], []
    with os.scandir(data_dir) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    for name in names:
        match = _PARTITION.fullmatch(name)
        if match is None:
            continue
        topic = topics.get(match[1])
        if topic is None or topic.deleting:
            _rename(data_dir, name, "stray")
            renamed.append(name)
        elif not _is_held(os.path.join(data_dir, name), topic, int(match[2]), node_id):
            removed.append(name)
    to_delete = [_rename(data_dir, name, "delete") for name in removed]
    if to_delete:
        log.info(
            "Removing %d directories of replicas that this broker no longer has: %s.", len(to_delete), _some(removed)
        )
        threading.Thread(target=_remove, args=(to_delete,), name="pylog-stray-logs", daemon=True).start()
    if renamed:
        log.warning(
            "%d directories belong to topics that the cluster does not know; they are renamed to end in -stray and can be deleted: %s.",
            len(renamed), _some(renamed),
        )  # fmt: skip
    return removed, renamed


def _is_held(directory: str, topic: Topic, partition: int, node_id: int) -> bool:
    if partition >= len(topic.partitions) or node_id not in topic.partitions[partition].replicas:
        return False
    try:
        with open(os.path.join(directory, "partition.metadata"), encoding="ascii", errors="replace") as file:
            found = _TOPIC_ID.search(file.read())
    except OSError:
        return True
    # The native server decides about a damaged file.
    return found is None or len(found[1]) != len(topic.topic_id) or found[1] == topic.topic_id


def _rename(data_dir: str, name: str, suffix: str) -> str:
    ending = f".{uuid.uuid4().hex}-{suffix}"
    path = os.path.join(data_dir, name[: _NAME_MAX - len(ending)] + ending)
    os.rename(os.path.join(data_dir, name), path)
    return path


def _remove(directories: list[str]) -> None:
    for directory in directories:
        # The next start removes what is left.
        shutil.rmtree(directory, ignore_errors=True)


def _some(names: list[str]) -> str:
    return ", ".join(sorted(names)[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
