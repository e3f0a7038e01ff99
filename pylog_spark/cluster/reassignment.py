"""Moving replicas to other brokers: beginning a move, cancelling it, listing the moves under way. Pure; no IO, no clock.

A move has three steps. `start` adds the new replicas and marks the ones to remove; the new ones fetch until the leader takes them
into the ISR; `election.reconcile` completes the move: when all replicas that stay are in sync, the others are removed. Until then it can
be cancelled or replaced by another move; both start from the replicas before the first move.

Not guaranteed: that a cancelled move restores the order of the replicas; those that are in both keep the order of the wanted replicas.
"""

from collections.abc import Mapping, Sequence

from pylog_spark.cluster.election import (
    Liveness,
    PartitionRules,
    changed,
    effective_min_isr,
    first_of,
    in_order,
    with_partitions,
)
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import Partition, Topic


def start(
    topic: Topic, targets: Mapping[int, Sequence[int] | None], live: Liveness, rules: PartitionRules | None = None
) -> tuple[Topic, dict[int, Refusal]]:
    """Begin to move partitions to the replicas of `targets` (None: cancel). Returns the topic, and why some partitions are not moved.

    The wanted replicas may be on brokers that are dead, but known: the move waits for them. `reconcile` the topic before it is stored: a change
    of the order alone is complete at once. With `rules` a move that would leave fewer than min.insync.replicas in sync is refused.
    """
    after = list(topic.partitions)
    refused: dict[int, Refusal] = {}
    for index, target in targets.items():
        if topic.deleting or not 0 <= index < len(after):
            sentence = f"Topic '{topic.name}' has no partition {index}."
            refused[index] = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)
            continue
        decision = _begun(after[index], target, live, rules or PartitionRules(min_isr=1, unclean=False))
        if isinstance(decision, Refusal):
            refused[index] = decision
        else:
            after[index] = decision
    return with_partitions(topic, after), refused


def listing(topic: Topic) -> tuple[Partition, ...]:
    """Give the partitions whose replicas are being moved; `replicas`, `adding` and `removing` describe the move."""
    return tuple(partition for partition in topic.partitions if partition.adding or partition.removing)


def original(partition: Partition) -> tuple[int, ...]:
    """Give the replicas of the partition before the move under way, if there is one."""
    return tuple(broker for broker in partition.replicas if broker not in partition.adding)


def _begun(
    partition: Partition, target: Sequence[int] | None, live: Liveness, rules: PartitionRules
) -> Partition | Refusal:
    if target is None:
        if not (partition.adding or partition.removing):
            return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No reassignment of this partition is in progress.")
        return _moving(partition, original(partition), live, rules)
    return _invalid(partition, target, live) or _moving(partition, tuple(target), live, rules)


def _invalid(partition: Partition, target: Sequence[int], live: Liveness) -> Refusal | None:
    sentence = None
    unknown = [broker for broker in target if broker not in live.registered and broker not in partition.replicas]
    if not target:
        sentence = "The assignment has an empty list of replicas: name at least one broker."
    elif len(set(target)) < len(target):
        sentence = f"The assignment {list(target)} has a broker more than once."
    elif unknown:
        sentence = f"The assignment {list(target)} has broker {unknown[0]}, but no such broker is registered."
    return None if sentence is None else Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)


def _moving(
    partition: Partition, target: tuple[int, ...], live: Liveness, rules: PartitionRules
) -> Partition | Refusal:
    before = original(partition)
    removing = tuple(broker for broker in before if broker not in target)
    replicas = (*target, *removing)
    isr = in_order(replicas, partition.isr)
    # Committed records are on that many replicas; cancelling a move must not leave them on fewer.
    whole = {*partition.isr, *partition.elr}
    staying = in_order(replicas, whole)
    if not isr or len(staying) < min(len(whole), effective_min_isr(replicas, rules)):
        sentence = (
            f"Of brokers {sorted(whole)}, which have every record, only {sorted(staying)} would stay: wait for others."
        )
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    dropped = not set(replicas).issuperset(partition.replicas)
    return changed(
        partition,
        # As when a move completes: a leader must not count the records of a removed replica that is added again later.
        bump=dropped,
        replicas=replicas,
        adding=tuple(broker for broker in target if broker not in before),
        removing=removing,
        isr=isr if dropped else partition.isr,
        leader=partition.leader if partition.leader in (*replicas, -1) else first_of(replicas, isr, live.active),
        elr=in_order(replicas, partition.elr) if dropped else partition.elr,
    )
