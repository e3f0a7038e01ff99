"""Which broker leads each partition: decided from the topic, the live brokers and the topic's rules. Pure; no IO, no clock.

Promises, whatever the order of calls:

- A leader comes from the ISR, else from the ELR; from the other replicas only where unclean elections are allowed.
- Each change of the leader, also to none, has a leader_epoch of its own, and each change of a partition a partition_epoch.
- An ISR is never empty: its last members stay in it until one of them is back, so that no other replica leads without an unclean election.
- When there is nothing to do, the same topic object is given; `reconcile` of its own result does nothing.

The ELR (KIP-966) are replicas outside the ISR that nevertheless have every committed record: they left when the ISR fell below
min.insync.replicas, and below it nothing is committed. So a change of a topic's min.insync.replicas must run `reconfigured` on
it in the same write, and the default of that setting is the same at all brokers.

Not guaranteed: when records are only in the page cache, the last replica of ISR and ELR can lose its newest records in a power failure;
it leads again nevertheless, because no other replica has more of the committed records.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import Partition, Topic

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Liveness:
    """Which brokers live.

    Attributes
    ----------
    alive : frozenset of int
        The brokers that are registered.
    leaving : frozenset of int
        Those of them that are being stopped: they get no new partitions to lead and leave every ISR.
    epochs : mapping of int to int
        The epochs of their registrations, as far as they are known.
    known : frozenset of int
        The brokers that belong to the cluster, including dead ones.
    """

    alive: frozenset[int]
    leaving: frozenset[int] = frozenset()
    epochs: Mapping[int, int] = field(default_factory=dict, hash=False)
    known: frozenset[int] = frozenset()

    @property
    def active(self) -> frozenset[int]:
        """The brokers that live and are not being stopped."""
        return self.alive - self.leaving

    @property
    def registered(self) -> frozenset[int]:
        """The brokers that may have replicas, including dead ones."""
        return self.alive | self.known


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """A topic's min.insync.replicas and unclean.leader.election.enable, or the brokers' defaults of these."""

    min_isr: int
    unclean: bool


def reconcile(topic: Topic, live: Liveness, rules: PartitionRules) -> Topic:
    """Make `topic` fit the live brokers: dead ones leave the ISRs, leaders are elected, finished reassignments are completed."""
    if topic.deleting:
        return topic
    active = live.active
    return with_partitions(topic, [_reconciled(partition, live.alive, active, rules) for partition in topic.partitions])


def leave(topic: Topic, broker_id: int, live: Liveness, rules: PartitionRules) -> Topic:
    """Take away the leadership of `broker_id`, and its place in every ISR that has another member; called before it stops cleanly.

    Without unclean elections: partitions that no other broker may lead have no leader until the controller finds the broker gone.
    """
    if topic.deleting:
        return topic
    alive, active = live.alive - {broker_id}, live.active - {broker_id}
    careful = replace(rules, unclean=False)
    partitions = [
        _reconciled(partition, alive, active, careful) if broker_id in (partition.leader, *partition.isr) else partition
        for partition in topic.partitions
    ]
    return with_partitions(topic, partitions)


def rejoin(topic: Topic, broker_id: int, clean: bool, live: Liveness, rules: PartitionRules) -> Topic:
    """Take away the leadership of `broker_id`, since its knowledge as a leader is lost; called before it registers again.

    `clean` says that its logs are surely unchanged: it was stopped cleanly, or its machine has not lost power since.
    Otherwise it leaves ISR and ELR, unless it is the last member, and each partition of which it has a replica gets a new
    leader_epoch, so that no leader counts records that the broker had fetched before.
    """
    if topic.deleting:
        return topic
    others = live.active - {broker_id}
    return with_partitions(
        topic, [_rejoined(partition, broker_id, clean, others, rules) for partition in topic.partitions]
    )


def without_log(
    topic: Topic, broker_id: int, partitions: Collection[int], live: Liveness, rules: PartitionRules
) -> Topic:
    """Take `broker_id`, which has lost the logs of these partitions, out of their leadership, ISR and ELR; called before it registers
    again. It copies the records from the leader. If it is the last member, it stays one and does not serve the partition until its files
    are back."""
    if topic.deleting:
        return topic
    others = live.active - {broker_id}

    def left(partition: Partition) -> Partition:
        return _rejoined(partition, broker_id, False, others, rules) if partition.partition in partitions else partition

    return with_partitions(topic, [left(partition) for partition in topic.partitions])


def reconfigured(topic: Topic, rules: PartitionRules) -> Topic:
    """Remove replicas from the ELR that do not belong there under new settings; stored in the same write as these.

    When the leader learns of a lower min.insync.replicas, it may commit records that an eligible replica lacks, and that could not be
    found out later.
    """
    partitions = [changed(partition, elr=eligible(partition, partition.isr, rules)) for partition in topic.partitions]
    return with_partitions(topic, partitions)


def elect_preferred(
    topic: Topic, partitions: Iterable[int], live: Liveness, rules: PartitionRules
) -> tuple[Topic, dict[int, Refusal]]:
    """Let the first replica of each of `partitions` lead. Returns the topic, and why some partitions keep their leaders."""

    def elected(partition: Partition) -> Partition | Refusal:
        preferred = partition.replicas[0]
        if partition.leader == preferred:
            return Refusal(
                ErrorCode.ELECTION_NOT_NEEDED, f"Its preferred leader, broker {preferred}, leads it already."
            )
        if preferred not in live.active or preferred not in partition.isr:
            sentence = f"Its preferred leader, broker {preferred}, is not alive or not in sync: ask again later."
            return Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, sentence)
        return changed(partition, leader=preferred)

    return _elected(topic, partitions, elected)


def elect_unclean(
    topic: Topic, partitions: Iterable[int], live: Liveness, rules: PartitionRules
) -> tuple[Topic, dict[int, Refusal]]:
    """Give each of `partitions` without a leader a new one, even a replica that lacks committed records, which are then lost."""

    def elected(partition: Partition) -> Partition | Refusal:
        if partition.leader != NOBODY:
            return Refusal(ErrorCode.ELECTION_NOT_NEEDED, f"Broker {partition.leader} leads it.")
        reconciled = _reconciled(partition, live.alive, live.active, replace(rules, unclean=True))
        if reconciled.leader == NOBODY:
            return Refusal(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No broker with a replica of it is alive: start one of them."
            )
        return reconciled

    return _elected(topic, partitions, elected)


def _elected(
    topic: Topic, partitions: Iterable[int], elected: Callable[[Partition], Partition | Refusal]
) -> tuple[Topic, dict[int, Refusal]]:
    after = list(topic.partitions)
    refused: dict[int, Refusal] = {}
    for index in partitions:
        if topic.deleting or not 0 <= index < len(after):
            sentence = f"Topic '{topic.name}' has no partition {index}."
            refused[index] = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)
            continue
        decision = elected(after[index])
        if isinstance(decision, Refusal):
            refused[index] = decision
        else:
            after[index] = decision
    return with_partitions(topic, after), refused


def imbalanced(topics: Collection[Topic], live: Liveness, percentage: int) -> list[tuple[str, int]]:
    """Give the partitions whose leadership `elect_preferred` should give back, as (topic, partition).

    They belong to brokers that do not lead more than `percentage` per cent (leader.imbalance.per.broker.percentage) of the partitions of
    which they are the preferred leaders. Partitions that the broker cannot lead now, or whose replicas are being moved, are left out.
    """
    preferred: defaultdict[int, int] = defaultdict(int)
    not_preferred: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for topic in topics:
        for partition in () if topic.deleting else topic.partitions:
            preferred[partition.replicas[0]] += 1
            if partition.leader != partition.replicas[0]:
                not_preferred[partition.replicas[0]].append((topic.name, partition.partition))
    by_name = {topic.name: topic for topic in topics}
    found = []
    for broker, partitions in not_preferred.items():
        if broker in live.active and len(partitions) * 100 > percentage * preferred[broker]:
            found += [
                (name, index)
                for name, index in partitions
                if broker in (partition := by_name[name].partitions[index]).isr
                and not (partition.adding or partition.removing)
            ]
    return sorted(found)


def effective_min_isr(replicas: Sequence[int], rules: PartitionRules) -> int:
    """Give min.insync.replicas, or the number of replicas if that is lower. With a smaller ISR the high watermark does not advance."""
    return min(rules.min_isr, len(replicas))


def eligible(
    partition: Partition, isr: Collection[int], rules: PartitionRules, unclean: Collection[int] = ()
) -> tuple[int, ...]:
    """Give the ELR of `partition` when its ISR becomes `isr`. Brokers in `unclean` may have lost records and are never in it."""
    if len(isr) >= effective_min_isr(partition.replicas, rules):
        return ()
    return in_order(partition.replicas, {*partition.isr, *partition.elr}.difference(isr, unclean))


def in_order(replicas: Sequence[int], brokers: Collection[int]) -> tuple[int, ...]:
    """Give those of `brokers` that have a replica, in the order of `replicas`."""
    return tuple(broker for broker in replicas if broker in brokers)


def first_of(replicas: Sequence[int], *sets: Collection[int]) -> int:
    """Give the first of `replicas` that is in all of `sets`, `NOBODY` when there is none."""
    return next((broker for broker in replicas if all(broker in members for members in sets)), NOBODY)


def changed(partition: Partition, /, *, bump: bool = False, **fields: Any) -> Partition:
    """Give `partition` with these fields and new epochs: another leader, or `bump`, raises the leader_epoch. The same object when nothing
    changes."""
    after = replace(partition, **fields)
    elected = bump or after.leader != partition.leader
    if after == partition and not elected:
        return partition
    return replace(after, leader_epoch=partition.leader_epoch + elected, partition_epoch=partition.partition_epoch + 1)


def with_partitions(topic: Topic, partitions: Sequence[Partition]) -> Topic:
    """Give `topic` with these partitions; the same object when none of them has changed."""
    if all(new is old for new, old in zip(partitions, topic.partitions, strict=True)):
        return topic
    return replace(topic, partitions=tuple(partitions))


def _reconciled(
    partition: Partition, alive: frozenset[int], active: frozenset[int], rules: PartitionRules
) -> Partition:
    if (
        partition.leader in active
        and active.issuperset(partition.isr)
        and not (partition.adding or partition.removing or partition.elr)
    ):
        return partition
    # First the ELR under the present rules: under a lower min.insync.replicas records may have been committed without some members.
    current = replace(partition, elr=eligible(partition, partition.isr, rules))
    isr, unclean = _surviving(current, alive, active, rules)
    target = tuple(broker for broker in partition.replicas if broker not in partition.removing)
    moved = (
        bool(partition.adding or partition.removing) and set(isr).issuperset(target) and not active.isdisjoint(target)
    )
    replicas = target if moved else partition.replicas
    isr = in_order(replicas, isr) if moved or set(isr) != set(partition.isr) else partition.isr
    leader = (
        partition.leader if partition.leader in isr and partition.leader in active else first_of(replicas, isr, active)
    )
    if leader == NOBODY and partition.leader in isr and partition.leader in alive:
        leader = partition.leader
    return changed(
        partition,
        # With the old epoch, a leader that missed the change or that gets the replica back would count records it had before.
        bump=len(replicas) < len(partition.replicas),
        replicas=replicas,
        adding=() if moved else partition.adding,
        removing=() if moved else partition.removing,
        isr=isr,
        leader=leader,
        elr=() if unclean else eligible(replace(current, replicas=replicas), isr, rules),
    )


def _surviving(
    partition: Partition, alive: frozenset[int], active: frozenset[int], rules: PartitionRules
) -> tuple[tuple[int, ...], bool]:
    """The ISR without the brokers that are gone, and whether it now has one that may lack committed records."""
    for there in (active.intersection(partition.isr), {first_of(partition.replicas, partition.elr, active)} - {NOBODY}):
        if there:
            return in_order(partition.replicas, there), False
    staying = alive.intersection(partition.isr)
    if staying:
        return in_order(partition.replicas, staying), False
    anybody = first_of(partition.replicas, active)
    if rules.unclean and anybody != NOBODY:
        return (anybody,), True
    return partition.isr, False


def _rejoined(
    partition: Partition, broker_id: int, clean: bool, others: frozenset[int], rules: PartitionRules
) -> Partition:
    if broker_id not in partition.replicas:
        return partition
    isr, elr = partition.isr, partition.elr
    if not clean:
        spare = tuple(broker for broker in eligible(partition, partition.isr, rules) if broker != broker_id)
        left = tuple(broker for broker in partition.isr if broker != broker_id)
        if not left and spare:
            left = (next((broker for broker in spare if broker in others), spare[0]),)
        if left:
            isr, elr = left, eligible(partition, left, rules, unclean=(broker_id,))
    leader = first_of(partition.replicas, isr, others) if partition.leader == broker_id else partition.leader
    return changed(partition, bump=not clean and leader != NOBODY, isr=isr, elr=elr, leader=leader)
