"""Which topics are mirrored, and what they should be in the target. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pylog_spark.client.admin import Admin
from pylog_spark.results.topics import TopicDescription

#: The setting of a topic that is a copy: the id of the cluster where it comes from; and its value while that is being ended.
MIRROR_SOURCE = "mirror.source"
ENDED = "ended"

_MIN_ISR = "min.insync.replicas"
_GIVEN = "DYNAMIC_TOPIC_CONFIG"
#: Settings that name something else of their own cluster: in another one, or in an archive from somebody else, they would name what whoever
#: copies them has a right to, and whoever wrote them has not.
_NAMING = ("retention.until.checkpointed", "schema.validation.dead.letter.topic")
#: Settings that are about the one cluster.
_OF_ONE_CLUSTER = frozenset(
    {
        MIRROR_SOURCE,
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        *_NAMING,
        "schema.validation.dead.letter.owner",
    }
)
#: Topics of the brokers and of Spark's exactly-once writes, which mean something in their own cluster only.
_INTERNAL_PREFIX = "__"
#: Of how many topics settings are asked for in one request.
_DESCRIBED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as one of the clusters has it.

    Attributes
    ----------
    name : str
        Its name.
    topic_id : str
        Its id.
    leaders : tuple of int
        The broker that leads each partition; -1 for none.
    replication_factor : int
        Replicas of each partition.
    configs : mapping of str to str
        The settings that were given to it.
    """

    name: str
    topic_id: str
    leaders: tuple[int, ...]
    replication_factor: int
    configs: Mapping[str, str]

    @property
    def source(self) -> str:
        """The id of the cluster that it is a copy of; empty for a topic as any other."""
        return self.configs.get(MIRROR_SOURCE, "")


@dataclass(frozen=True, slots=True)
class Copy:
    """What a topic should be in the target: its settings, its replicas, and why that differs from the source, in sentences."""

    configs: Mapping[str, str]
    replication_factor: int
    notes: tuple[str, ...]


def is_wanted(topic: TopicDescription, pattern: re.Pattern[str]) -> bool:
    """Say whether a topic of the source is mirrored."""
    return not topic.is_internal and not topic.name.startswith(_INTERNAL_PREFIX) and bool(pattern.fullmatch(topic.name))


def read_topics(admin: Admin, described: Iterable[TopicDescription]) -> dict[str, Topic]:
    """Ask for the settings of topics that were described. Those that are gone meanwhile are left out."""
    there = {topic.name: topic for topic in described if not topic.error}
    if not there:
        return {}
    topics, names = {}, sorted(there)
    parts = [names[at : at + _DESCRIBED_AT_ONCE] for at in range(0, len(names), _DESCRIBED_AT_ONCE)]
    for description in (each for part in parts for each in admin.configs("topic", part)):
        topic = there[description.name]
        if description.error:
            continue
        given = {entry.name: entry.value or "" for entry in description.configs if entry.source == _GIVEN}
        leaders = tuple(partition.leader for partition in topic.partitions)
        factor = max((len(partition.replicas) for partition in topic.partitions), default=1)
        topics[topic.name] = Topic(topic.name, topic.topic_id, leaders, factor, given)
    return topics


def copy_of(topic: Topic, more: Mapping[str, str], brokers: int, replication_factor: int | None = None) -> Copy:
    """Say what a topic should be in a target of so many brokers.

    Parameters
    ----------
    topic : Topic
        As the source has it.
    more : mapping of str to str
        Settings that are to be other than in the source.
    brokers : int
        How many brokers the target has.
    replication_factor : int, optional
        Replicas in the target; as many as in the source, or as there are brokers, when left out.
    """
    factor = replication_factor or min(topic.replication_factor, max(brokers, 1))
    configs = {name: value for name, value in topic.configs.items() if name not in _OF_ONE_CLUSTER} | dict(more)
    notes = []
    if factor < topic.replication_factor and replication_factor is None:
        notes.append(
            f"topic {topic.name}: {topic.replication_factor} replicas in the source, {factor} in the target, which has no more brokers"
        )
    in_sync = configs.get(_MIN_ISR, "")
    if in_sync.isdigit() and int(in_sync) > factor:
        configs[_MIN_ISR] = str(factor)
        notes.append(f"topic {topic.name}: {_MIN_ISR}={in_sync} is {factor} in the target, which has no more replicas")
    notes.extend(
        f"topic {topic.name}: {setting}={topic.configs[setting]} in the source names what is of its own cluster, so it is not set in the target"
        for setting in _NAMING
        if topic.configs.get(setting) and setting not in more
    )
    return Copy(configs, factor, tuple(notes))


def changes(wanted: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str | None]:
    """Say which settings of a copy are to change, and to what; None: to the default."""
    mine = {name: value for name, value in present.items() if name not in _OF_ONE_CLUSTER}
    changed: dict[str, str | None] = {name: value for name, value in wanted.items() if present.get(name) != value}
    return changed | dict.fromkeys(name for name in mine if name not in wanted)
