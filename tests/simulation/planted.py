"""The project's own decisions, and the same ones with a mistake planted in them: the simulator must notice each one."""

from collections.abc import Sequence
from dataclasses import replace

from pylog_spark.cluster import election, isr
from pylog_spark.cluster.election import Liveness, PartitionRules
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.model import Partition, Topic

IN_DECISIONS = (
    "no ELR",
    "the ELR outlives its reason",
    "a leader from anywhere",
    "an unclean return keeps its place",
    "a restarted leader goes on",
    "a move completes early",
    "a cancelled move leaves too few",
    "another min.insync.replicas without reconciling",
)
IN_BROKERS = (
    "no truncation",
    "only the stored ISR counts",
    "committed below min.insync.replicas",
    "joins before the epoch's first record",
    "the leader's page cache counts as flushed",
    "a follower's page cache counts as flushed",
    "a zombie controller writes",
    "writes without compare-and-set",
    "the lease outlives the session",
    "the lease before the documents",
    "an unclean stop is forgotten at once",
)


class Decisions:
    """What brokers decide with; without `planted` exactly what `pylog_spark.cluster` says."""

    def __init__(self, planted: frozenset[str]) -> None:
        self._planted = planted

    def reconcile(self, topic: Topic, live: Liveness, rules: PartitionRules) -> Topic:
        if "a leader from anywhere" in self._planted:
            rules = replace(rules, unclean=True)
        if "a move completes early" in self._planted:
            early = [_early(partition) for partition in topic.partitions]
            topic = election.with_partitions(topic, early)
        return self._spoiled(topic, election.reconcile(topic, live, rules))

    def leave(self, topic: Topic, broker: int, live: Liveness, rules: PartitionRules) -> Topic:
        return self._spoiled(topic, election.leave(topic, broker, live, rules))

    def rejoin(self, topic: Topic, broker: int, clean: bool, live: Liveness, rules: PartitionRules) -> Topic:
        if "a restarted leader goes on" in self._planted:
            return topic
        clean = clean or "an unclean return keeps its place" in self._planted
        return self._spoiled(topic, election.rejoin(topic, broker, clean, live, rules))

    def alter(
        self, topic: Topic, broker: int, proposals: Sequence[isr.IsrProposal], live: Liveness, rules: PartitionRules
    ) -> tuple[Topic, dict[int, ErrorCode]]:
        after, answers = isr.alter(topic, broker, proposals, live, rules)
        return self._spoiled(topic, after), answers

    def _spoiled(self, before: Topic, after: Topic) -> Topic:
        if after is before:
            return after
        if "no ELR" in self._planted:
            return replace(after, partitions=tuple(replace(partition, elr=()) for partition in after.partitions))
        if "the ELR outlives its reason" in self._planted:
            return replace(after, partitions=tuple(map(_lasting, before.partitions, after.partitions)))
        return after


def _early(partition: Partition) -> Partition:
    """A move whose first new replica is in sync is taken for complete."""
    target = tuple(broker for broker in partition.replicas if broker not in partition.removing)
    there = tuple(broker for broker in target if broker in partition.isr)
    if not (partition.adding and set(partition.adding) & set(there)):
        return partition
    return replace(
        election.changed(partition, bump=True, leader=there[0]),
        replicas=target,
        adding=(),
        removing=(),
        isr=there,
        elr=(),
    )


def _lasting(before: Partition, after: Partition) -> Partition:
    elr = tuple(broker for broker in after.replicas if broker in (*before.elr, *after.elr) and broker not in after.isr)
    return replace(after, elr=elr)
