"""Removes from the archive what it has of topics that were deleted, on one broker of the cluster.

A topic goes when this broker does not know its id at two looks one after the other, and the store of the cluster does not, either: a broker may hear of
a new topic late. What a cut needs stays. Topics of other clusters in the same archive are nobody's here.
"""

from __future__ import annotations

import logging
from typing import Protocol

from pylog_spark.archive.store.cuts import all_cuts
from pylog_spark.archive.store.layout import NO_ID, SEGMENT_SUFFIX, TOPIC, TOPICS, decode_topic, topic_folder
from pylog_spark.archive.store.manifest import ManifestError
from pylog_spark.archive.store.objects import Objects
from pylog_spark.archive.tiered.counting import Counting
from pylog_spark.client.errors import LogError

log = logging.getLogger("pylog.broker.archive")


class Cluster(Protocol):
    """What is known of the cluster."""

    @property
    def cluster_id(self) -> str:
        """Its id."""

    def is_decider(self) -> bool:
        """Whether this broker is the one that decides for all of them."""

    def topic_ids(self) -> set[str]:
        """The ids of all topics, as this broker knows them."""

    def stored_topic_id(self, topic: str) -> str | None:
        """The id of a topic, as the cluster's store has it at this moment; None when there is no such topic. Raises OSError."""


class Sweeper:
    """Removes deleted topics.

    Parameters
    ----------
    objects : Objects
        The archive.
    cluster : Cluster
        Whose topics.
    counting : Counting
        Where it is counted.
    """

    def __init__(self, objects: Objects, cluster: Cluster, counting: Counting) -> None:
        self._objects, self._cluster, self._counting = objects, cluster, counting
        self._missing: set[tuple[str, str]] = set()
        self._ours: set[tuple[str, str]] = set()

    def turn(self) -> None:
        """Remove what was missing the last time, too; what fails is said, and tried again the next time."""
        if not self._cluster.is_decider():
            self._missing.clear()
            return
        try:
            self._turn()
        except (LogError, OSError) as error:
            self._counting.delete_failed()
            log.warning("The archive cannot be swept of deleted topics now; it is tried again: %s", error)

    def _turn(self) -> None:
        archived = self._archived()
        there = self._cluster.topic_ids()
        missing = {at for at in archived if at[1] not in there}
        gone = missing & self._missing
        self._missing = missing - gone
        if not gone:
            return
        needed = {(cut.topic, cut.topic_id) for cut in all_cuts(self._objects) if not cut.is_own}
        for topic, topic_id in sorted(gone - needed):
            if self._cluster.stored_topic_id(topic) != topic_id:
                self._remove(topic, topic_id)

    def _archived(self) -> set[tuple[str, str]]:
        """The topics of this cluster that are in the archive, with their ids."""
        found = set()
        for name in self._objects.folders(TOPICS):
            for folder in self._objects.folders(f"{TOPICS}/{name}"):
                if folder != NO_ID and ((name, folder) in self._ours or self._is_ours(name, folder)):
                    found.add((name, folder))
        self._ours = found
        return found

    def _is_ours(self, topic: str, topic_id: str) -> bool:
        path = f"{topic_folder(topic, topic_id)}/{TOPIC}"
        try:
            return decode_topic(self._objects.read(path)).cluster_id == self._cluster.cluster_id
        except FileNotFoundError:
            return False
        except ManifestError as error:
            log.warning("%s of the archive cannot be used: %s.", path, error)
            return False

    def _remove(self, topic: str, topic_id: str) -> None:
        folder = topic_folder(topic, topic_id)
        document = f"{folder}/{TOPIC}"
        count = 0
        for path in self._objects.all_files(folder):
            if path != document:
                self._objects.delete(path)
                if path.endswith(SEGMENT_SUFFIX):
                    self._counting.deleted()
                count += 1
        # Last: whose the rest is stands in it.
        self._objects.delete(document)
        log.info(
            "The topic %s (%s) was deleted: %d objects of it are removed from the archive.", topic, topic_id, count
        )
