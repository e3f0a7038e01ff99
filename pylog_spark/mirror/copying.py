"""A mirror that runs: looks what the source has, makes the same of the target, and lets the native half copy.

It goes on through everything but the end of its process: what cannot be reached is tried again, and said meanwhile. Nothing is
remembered; a mirror that begins anew goes on where the target's logs end. `run` is for one thread; `close` may be called from another.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.mirror.copies import Copies, SameOffsets, takes_offsets
from pylog_spark.mirror.groups import GroupOffsets
from pylog_spark.mirror.lag import cluster_id
from pylog_spark.mirror.notices import Notices
from pylog_spark.mirror.own_offsets import OwnOffsets
from pylog_spark.mirror.topics import Topic, changes, copy_of, is_wanted, read_topics
from pylog_spark.results.mirror import MirroredPartition

#: How often topics and settings are compared.
REFRESH_S = 2.0
#: How often offsets of groups are.
GROUPS_S = 10.0
_TICK_S = 0.1

Configs = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """What is mirrored, and how.

    Attributes
    ----------
    topics : str
        A regular expression that matches the whole names of the topics.
    groups : str
        The same for the consumer groups whose offsets are kept in the target.
    configs : mapping of str to str
        Settings of topics that are to be other than in the source.
    replication_factor : int or None
        Replicas in the target; None: as in the source, as far as there are brokers.
    bytes_per_second : int or None
        Most bytes that are copied in a second.
    interval_s : float
        How often a line says how far it is.
    """

    topics: str = ".*"
    groups: str = ".*"
    configs: Configs = field(default_factory=dict)
    replication_factor: int | None = None
    bytes_per_second: int | None = None
    interval_s: float = 10.0


class TopicMirror:
    """Keeps topics of one cluster in another. Use in a ``with`` block, or close it.

    Parameters
    ----------
    source, target : mapping of str to str
        Settings of the client for both, by Kafka's names.
    options : MirrorOptions
        What is mirrored.
    say : callable
        Takes each line for the user.
    """

    def __init__(self, source: Configs, target: Configs, options: MirrorOptions, say: Callable[[str], None]) -> None:
        self.options = options
        self._pattern = re.compile(options.topics)
        self._settings = (dict(source), dict(target))
        self._source = Admin(source["bootstrap.servers"], source)
        self._target = Admin(target["bootstrap.servers"], target)
        self._notices = Notices(say)
        self._groups = GroupOffsets(self._source, self._target, re.compile(options.groups), self._notices)
        self._mirrored: dict[str, Topic] = {}
        self._refused: dict[str, set[str]] = {}
        self._copies: Copies | None = None
        self.source_id = ""

    def __enter__(self) -> "TopicMirror":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def begin(self) -> None:
        """Look at both clusters, make what is missing, and begin to copy.

        Raises
        ------
        LogError
            One cannot be reached, both are the same, or the target cannot be a target.
        """
        self.source_id = cluster_id(self._source, "source")
        if self.source_id == cluster_id(self._target, "target"):
            raise LogError("INVALID_ARGUMENT", f"Source and target are the same cluster, {self.source_id}.")
        limit = self.options.bytes_per_second
        if takes_offsets(self._target):
            self._copies = SameOffsets(*self._settings, self._target, self.source_id, limit)
        else:
            self._notices.say(
                "the target is no pylog that takes batches as they are: records are copied, exactly once, to offsets of their own"
            )
            copies = OwnOffsets(*self._settings, self._source, self._target, self.source_id, limit, self._notices)
            self._copies = copies
            copies.begin()
        self.refresh()

    def run(self, stopping: threading.Event) -> None:
        """Keep the topics in the target until `stopping` is set. The groups' offsets come last."""
        refresh_at = report_at = groups_at = time.monotonic()
        began, copied = report_at, 0
        report_at += self.options.interval_s
        while not stopping.wait(_TICK_S):
            now = time.monotonic()
            if now >= refresh_at:
                self._attempt(self.refresh)
                refresh_at = time.monotonic() + REFRESH_S
            elif self.copies.take_stale():
                self._attempt(self.follow_leaders)
            elif now >= groups_at:
                self._attempt(self.follow_groups)
                groups_at = time.monotonic() + GROUPS_S
            partitions = self.progress()
            self._notices.failing(partitions, self.copies.failures())
            if now >= report_at:
                total = sum(partition.bytes for partition in partitions)
                self._notices.progress(partitions, (total - copied) / max(now - began, 0.001))
                began, copied, report_at = now, total, now + self.options.interval_s
        self._attempt(self.follow_groups)

    def close(self) -> None:
        """Stop copying and close all connections."""
        if self._copies is not None:
            self._copies.stop()
        self._source.close()
        self._target.close()

    def progress(self) -> list[MirroredPartition]:
        """Say how far each partition is."""
        return self.copies.progress()

    @property
    def copies(self) -> Copies:
        """What copies, after `begin`."""
        assert self._copies is not None
        return self._copies

    @property
    def topics(self) -> list[str]:
        """The topics that are copied now."""
        return sorted(self._mirrored)

    def refresh(self) -> None:
        """Compare both clusters, and let the native half copy what it should."""
        described = [topic for topic in self._source.topics() if is_wanted(topic, self._pattern)]
        wanted = read_topics(self._source, described)
        present = self._target.topics()
        copies = read_topics(self._target, [topic for topic in present if is_wanted(topic, self._pattern)])
        brokers = len(self._target.cluster().brokers)
        mirrored: dict[str, Topic] = {}
        for name, topic in sorted(wanted.items()):
            known = self._mirrored.get(name)
            remembered = self.copies.topic_id(name) or (topic.topic_id if known is None else known.topic_id)
            if remembered != topic.topic_id:
                sentence = (
                    f"topic {name} was deleted in the source and made anew: delete its copy and start the mirror again"
                )
                self._notices.once(f"anew {name}", sentence)
                mirrored |= {} if known is None else {name: known}
            elif self._is_kept(topic, copies.get(name), brokers):
                mirrored[name] = topic
        for name, copied in sorted(copies.items()):
            if self.copies.owner(copied) == self.source_id and name not in wanted:
                self._notices.once(f"gone {name}", f"topic {name} is gone from the source: its copy stays as it is")
        self._mirrored = mirrored
        self.copies.assign({name: topic for name, topic in mirrored.items() if wanted[name].topic_id == topic.topic_id})
        self.copies.delete_before(self.progress())

    def follow_leaders(self) -> None:
        """Look who leads what in the source now."""
        described = {topic.name: topic for topic in self._source.topics(self.topics) if not topic.error}
        leaders = {}
        for name, topic in self._mirrored.items():
            found = described.get(name)
            if found is not None and found.topic_id == topic.topic_id:
                now = tuple(partition.leader for partition in found.partitions)[: len(topic.leaders)]
                leaders[name] = Topic(name, topic.topic_id, now, topic.replication_factor, topic.configs)
        self.copies.assign(leaders)

    def follow_groups(self) -> None:
        """Keep the offsets of groups."""
        self._groups.follow(self.copies.in_copies())

    def _is_kept(self, topic: Topic, present: Topic | None, brokers: int) -> bool:
        """Make the copy what it should be; whether it can be copied into."""
        copy = copy_of(topic, self.options.configs, brokers, self.options.replication_factor)
        for note in copy.notes:
            self._notices.once(note, note)
        if present is None:
            self.copies.create(topic, copy.replication_factor)
        elif self.copies.owner(present) != self.source_id:
            sentence = (
                f"topic {topic.name} is in the target and no mirror of cluster {self.source_id}: it is left alone"
            )
            self._notices.once(f"other {topic.name}", f"{sentence}; delete it there to have it mirrored")
            return False
        elif len(present.leaders) < len(topic.leaders):
            self._target.create_partitions(topic.name, len(topic.leaders))
        self._configure(topic.name, changes(copy.configs, {} if present is None else present.configs))
        return True

    def _configure(self, name: str, changed: Mapping[str, str | None]) -> None:
        refused = self._refused.setdefault(name, set())
        left = {setting: text for setting, text in changed.items() if f"{setting}={text}" not in refused}
        if not left:
            return
        try:
            self._target.alter_configs("topic", name, left)
        except LogError as error:
            if error.kind != "INVALID_CONFIG":
                raise
            self._configure_each(name, left, refused)

    def _configure_each(self, name: str, changed: Mapping[str, str | None], refused: set[str]) -> None:
        """Some setting is refused: take the others, and say which ones the target does not know."""
        news = {f"{setting}={text}" for setting, text in changed.items() if not self._takes(name, setting, text)}
        refused |= news
        if news:
            self._notices.say(f"topic {name}: the target does not take {', '.join(sorted(refused))}")

    def _takes(self, name: str, setting: str, text: str | None) -> bool:
        try:
            self._target.alter_configs("topic", name, {setting: text})
        except LogError as error:
            if error.kind != "INVALID_CONFIG":
                raise
            return False
        return True

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do something that may fail while brokers are away."""
        try:
            work()
        except LogError as error:
            if error.kind != "CLOSED":
                self._notices.once(
                    "clusters", f"the topics could not be compared, which is tried again: {error.sentence}"
                )
        else:
            self._notices.forget("clusters")


def stopped(mirror: TopicMirror, thread: threading.Thread, stopping: threading.Event, within_s: float) -> None:
    """End a mirror that runs in `thread`: at its next step, or where it waits after `within_s`."""
    stopping.set()
    thread.join(within_s)
    with suppress(LogError):
        mirror.close()
    thread.join()
