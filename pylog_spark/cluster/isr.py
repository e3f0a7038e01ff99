"""Whether the ISR that a leader proposes is accepted. Pure; no IO, no clock.

A proposal is accepted only when it was made from exactly the stored state: with another leader_epoch or partition_epoch it is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pylog_spark.cluster.election import Liveness, PartitionRules, changed, eligible, in_order, with_partitions
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.model import Partition, Topic


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The ISR that the leader of a partition wants, and the epochs of the state from which it decided.

    `epochs` are those of the members' registrations, in the order of `new_isr`; -1 where the epoch does not matter. A member that has
    registered again since the leader decided may have lost records that the leader counted (KIP-903).
    """

    partition: int
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[int, ...]
    epochs: tuple[int, ...] = ()


def alter(
    topic: Topic, broker_id: int, proposals: Sequence[IsrProposal], live: Liveness, rules: PartitionRules
) -> tuple[Topic, dict[int, ErrorCode]]:
    """Apply the proposals of the leader `broker_id`. Returns the topic (the same object when nothing changes), and an answer for each
    partition.

    Any answer but `ErrorCode.NONE` is final: the proposal is not in the topic.
    """
    partitions = {partition.partition: partition for partition in topic.partitions}
    answers: dict[int, ErrorCode] = {}
    for proposal in proposals:
        stored = None if topic.deleting else partitions.get(proposal.partition)
        if stored is None:
            answers[proposal.partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        answer = _refused(stored, broker_id, proposal, live)
        answers[proposal.partition] = answer
        if answer is ErrorCode.NONE and set(proposal.new_isr) != set(stored.isr):
            isr = in_order(stored.replicas, proposal.new_isr)
            partitions[stored.partition] = changed(stored, isr=isr, elr=eligible(stored, isr, rules))
    return with_partitions(topic, [partitions[partition.partition] for partition in topic.partitions]), answers


def _refused(partition: Partition, broker_id: int, proposal: IsrProposal, live: Liveness) -> ErrorCode:
    """The error code when `proposal` cannot be accepted; NONE when it can. The checks are in Kafka's order."""
    if proposal.leader_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if proposal.partition_epoch != partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = set(proposal.new_isr)
    if len(isr) < len(proposal.new_isr) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    # A dead member that is not dropped yet may stay: only new members have to be alive.
    come = isr.difference(partition.isr)
    if not isr.issubset(partition.replicas) or not live.active.issuperset(come):
        return ErrorCode.INELIGIBLE_REPLICA
    counted = zip(proposal.new_isr, proposal.epochs, strict=False)
    if any(member in come and 0 <= epoch != live.epochs.get(member, epoch) for member, epoch in counted):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
