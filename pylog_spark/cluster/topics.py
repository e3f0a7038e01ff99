"""Creating, deleting and growing topics: pure decisions from the present topics, the request and the rules. Nothing is stored here.

Each function gives the new `Topic` or a `Refusal` with Kafka's error code; a refused topic never
affects another one of the same request. Codes and conditions are Apache Kafka's (ReplicationControlManager, Topic).
Replicas are placed on known brokers, also on dead ones when the live ones are not enough. Leaders and in-sync replicas are only live
brokers, since a dead one has not created the log; it joins the ISR later like any follower that was down.
"""

import string
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pylog_spark.cluster.assignment import assign
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo, Partition, Topic

NAME_LENGTH_MAX = 249
# Kafka refuses more in one request too (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
NEW_PARTITIONS_MAX = 10_000

#: The setting of a topic that is a copy of another cluster's, and its value while that is being ended.
MIRROR_SOURCE = "mirror.source"
MIRROR_ENDED = "ended"

#: Where Kafka's controllers keep what the cluster is: no topic of clients.
METADATA_LOG = "__cluster_metadata"

_LEGAL = frozenset(string.ascii_letters + string.digits + "._-")

Topics = Mapping[str, Topic]


@dataclass(frozen=True, slots=True)
class Rules:
    """The broker's settings about topics.

    Attributes
    ----------
    check_config : callable
        Takes a topic setting's name and text, returns the text to store; raises ValueError with a sentence.
    brokers : sequence of BrokerInfo
        The brokers that may have replicas; only this broker when empty.
    absent : frozenset of int
        Those of them that are dead or being stopped: they get replicas only when the others are not enough, and are not in sync.
    check_configs : callable
        Takes the settings that a topic is given; raises ValueError with a sentence when they do not go together.
    """

    node_id: int
    num_partitions: int
    replication_factor: int
    delete_enabled: bool
    check_config: Callable[[str, str], str]
    brokers: Sequence[BrokerInfo] = ()
    absent: frozenset[int] = frozenset()
    check_configs: Callable[[Mapping[str, str]], None] = lambda _configs: None

    @property
    def takers(self) -> Sequence[BrokerInfo]:
        """The brokers that may have replicas, at least this one."""
        return self.brokers or (BrokerInfo(self.node_id),)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic as a client asks for it; -1 means the broker's default. `assignments`: (partition, broker ids)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[tuple[str, str | None]] = ()
    assignments: Sequence[tuple[int, Sequence[int]]] = field(default=())


def invalid_name(name: str) -> str | None:
    """Why `name` cannot name a topic, None when it can. It becomes a directory's name, so this also keeps paths out."""
    if name in ("", ".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed."
    if len(name) > NAME_LENGTH_MAX:
        return f"Topic name is invalid: its length of {len(name)} is above the maximum of {NAME_LENGTH_MAX}."
    if not _LEGAL.issuperset(name):
        return f"Topic name is invalid: {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'."
    return None


def create(
    topics: Topics, wanted: Sequence[NewTopic], rules: Rules, new_id: Callable[[], str]
) -> list[Topic | Refusal]:
    """Decide about each wanted topic, in order; earlier ones of the request count as present for later ones."""
    times = Counter(new_topic.name for new_topic in wanted)
    taken = {_collision_key(name): name for name in topics}
    budget = NEW_PARTITIONS_MAX
    decisions: list[Topic | Refusal] = []
    for new_topic in wanted:
        decision: Topic | Refusal
        if times[new_topic.name] > 1:
            decision = Refusal(
                ErrorCode.INVALID_REQUEST, f"Topic {new_topic.name!r} is in the request {times[new_topic.name]} times."
            )
        else:
            decision = _create_one(topics, taken, new_topic, rules, new_id)
        if isinstance(decision, Topic):
            budget -= len(decision.partitions)
            if budget < 0:
                decision = _too_many_partitions()
            else:
                taken[_collision_key(new_topic.name)] = new_topic.name
        decisions.append(decision)
    return decisions


def _create_one(
    topics: Topics, taken: Mapping[str, str], new_topic: NewTopic, rules: Rules, new_id: Callable[[], str]
) -> Topic | Refusal:
    reason = invalid_name(new_topic.name)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if new_topic.name == METADATA_LOG:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{METADATA_LOG}' is the name of the cluster's own log.")
    if new_topic.name in topics:
        doing = "is being deleted" if topics[new_topic.name].deleting else "already exists"
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new_topic.name}' {doing}.")
    other = taken.get(_collision_key(new_topic.name))
    if other is not None:
        sentence = f"Topic '{new_topic.name}' collides with '{other}': they differ only in '.' and '_'."
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, sentence)
    replicas = _manual(new_topic, rules) if new_topic.assignments else _placed(new_topic, rules)
    if isinstance(replicas, Refusal):
        return replicas
    configs = _configs(new_topic.configs, rules)
    if isinstance(configs, Refusal):
        return configs
    partitions = tuple(_led(index, brokers, rules) for index, brokers in enumerate(replicas))
    return Topic(new_topic.name, new_id(), configs, partitions)


def _collision_key(name: str) -> str:
    return name.replace(".", "_")


def _led(index: int, replicas: Sequence[int], rules: Rules) -> Partition:
    """A new partition, some of whose replicas are there."""
    isr = tuple(broker for broker in replicas if broker not in rules.absent)
    return Partition(index, tuple(replicas), isr[0], 0, isr)


def _too_many_partitions() -> Refusal:
    return Refusal(
        ErrorCode.POLICY_VIOLATION,
        f"One request may add {NEW_PARTITIONS_MAX} partitions: ask for fewer, or in several requests.",
    )


def _placed(new_topic: NewTopic, rules: Rules) -> Sequence[Sequence[int]] | Refusal:
    factor = rules.replication_factor if new_topic.replication_factor == -1 else new_topic.replication_factor
    if factor < 1:
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be at least 1, or -1 for the default."
        )
    count = rules.num_partitions if new_topic.num_partitions == -1 else new_topic.num_partitions
    if count < 1:
        return Refusal(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be at least 1, or -1 for the default.")
    if count > NEW_PARTITIONS_MAX:
        return _too_many_partitions()
    return assign(rules.takers, count, factor, start=_start(new_topic.name), absent=rules.absent)


def _start(name: str) -> int:
    """Where the placement of this topic begins: the same at each try, another one for another topic."""
    return zlib.crc32(name.encode())


def _manual(new_topic: NewTopic, rules: Rules) -> Sequence[Sequence[int]] | Refusal:
    if new_topic.num_partitions != -1 or new_topic.replication_factor != -1:
        sentence = "With a manual assignment, number of partitions and replication factor must both be -1."
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    in_order = sorted(new_topic.assignments, key=lambda assignment: assignment[0])
    if [index for index, _ in in_order] != list(range(len(in_order))):
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Assigned partitions must be numbered 0, 1, 2... without a gap."
        )
    assignments = [brokers for _, brokers in in_order]
    return _check_brokers(assignments, len(assignments[0]), rules) or assignments


def _check_brokers(assignments: Sequence[Sequence[int]], factor: int, rules: Rules) -> Refusal | None:
    known = {broker.id for broker in rules.takers}
    for brokers in assignments:
        sentence = None
        missing = [broker for broker in brokers if broker not in known]
        if not brokers:
            sentence = "The manual assignment has an empty list of replicas: name at least one broker."
        elif missing:
            sentence = (
                f"The manual assignment {list(brokers)} has broker {missing[0]}, but no such broker is registered."
            )
        elif len(set(brokers)) < len(brokers):
            sentence = f"The manual assignment {list(brokers)} has a broker more than once."
        elif len(brokers) != factor:
            sentence = (
                f"The manual assignment {list(brokers)} has {len(brokers)} replica(s), other partitions have {factor}."
            )
        elif rules.absent.issuperset(brokers):
            sentence = (
                f"The manual assignment {list(brokers)} has only brokers that are dead or being stopped: start one."
            )
        if sentence is not None:
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    return None


def _configs(given: Sequence[tuple[str, str | None]], rules: Rules) -> dict[str, str] | Refusal:
    configs: dict[str, str] = {}
    for name, text in given:
        if text is None:
            return Refusal(ErrorCode.INVALID_CONFIG, f"{name} has no value: give one or leave it out.")
        try:
            configs[name] = rules.check_config(name, text)
        except ValueError as error:
            return Refusal(ErrorCode.INVALID_CONFIG, str(error))
    try:
        rules.check_configs(configs)
    except ValueError as error:
        return Refusal(ErrorCode.INVALID_CONFIG, str(error))
    return configs


def mirror_change(topic: Topic, configs: Mapping[str, str]) -> Refusal | None:
    """Say why the settings of `topic` may not become `configs`; None when they may.

    Only a new topic can become a mirror: nobody has written to it, and no transaction holds it. A mirror ends in two steps, so that
    nobody else writes before all its partitions know.
    """
    before, after = topic.configs.get(MIRROR_SOURCE, ""), configs.get(MIRROR_SOURCE, "")
    allowed = {"": {""}, MIRROR_ENDED: {MIRROR_ENDED, ""}}.get(before, {before, MIRROR_ENDED})
    if after in allowed:
        return None
    if before in ("", MIRROR_ENDED):
        sentence = f"{MIRROR_SOURCE} can be set only when a topic is created: '{topic.name}' is there already."
    else:
        sentence = (
            f"Topic '{topic.name}' is a mirror of cluster {before}: end that with 'pylog mirror promote {topic.name}'."
        )
    return Refusal(ErrorCode.INVALID_CONFIG, sentence)


def unknown_topic(name: str) -> Refusal:
    """The answer for a topic that is not there."""
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")


def names_by_id(topics: Topics) -> dict[str, str]:
    """The names of the topics by their ids: made once for a request that has many ids."""
    return {topic.topic_id: name for name, topic in topics.items()}


def delete(
    topics: Topics, name: str | None, topic_id: str | None, names: Mapping[str, str], rules: Rules
) -> Topic | Refusal:
    """Decide to delete the topic called `name`, or the one with `topic_id`, found in `names` (by id), when `name` is None."""
    if not rules.delete_enabled:
        return Refusal(
            ErrorCode.TOPIC_DELETION_DISABLED, "Topics cannot be deleted here: delete.topic.enable is false."
        )
    if name is not None and topic_id is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, "A topic is deleted by its name or by its id: give one of them.")
    if name is None and topic_id is None:
        return Refusal(ErrorCode.INVALID_REQUEST, "Neither a name nor an id says which topic to delete.")
    if name is not None:
        topic = topics.get(name)
        return unknown_topic(name) if topic is None else replace(topic, deleting=True)
    topic = topics.get(names.get(topic_id or "", ""))
    if topic is not None and topic.topic_id == topic_id:
        return replace(topic, deleting=True)
    return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"No topic has the id {topic_id}.")


def add_partitions(
    topics: Topics, name: str, count: int, assignments: Sequence[Sequence[int]] | None, rules: Rules
) -> Topic | Refusal:
    """Decide to grow topic `name` to `count` partitions."""
    topic = topics.get(name)
    if topic is None or topic.deleting:
        return unknown_topic(name)
    present = len(topic.partitions)
    if count <= present:
        sentence = (
            f"Topic '{name}' has {present} partitions, so {count} would not add any: partitions cannot be removed."
        )
        return Refusal(ErrorCode.INVALID_PARTITIONS, sentence)
    if count - present > NEW_PARTITIONS_MAX:
        return _too_many_partitions()
    first = topic.partitions[0]
    factor = len(first.replicas) - len(first.removing)
    if assignments is None:
        placed = assign(
            rules.takers, count - present, factor, start=_start(name), first_partition=present, absent=rules.absent
        )
        if isinstance(placed, Refusal):
            return placed
        assignments = placed
    elif len(assignments) != count - present:
        sentence = f"{count - present} partitions are added, but {len(assignments)} are assigned."
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    refused = _check_brokers(assignments, factor, rules)
    if refused is not None:
        return refused
    added = (_led(index, brokers, rules) for index, brokers in enumerate(assignments, present))
    return replace(topic, partitions=(*topic.partitions, *added))
