"""A model of a led partition in one epoch: how far the followers are, what is committed, which ISR to propose."""

from dataclasses import dataclass, field

from pylog_spark.cluster.election import PartitionRules, effective_min_isr
from pylog_spark.cluster.isr import IsrProposal
from pylog_spark.cluster.model import Partition, Topic
from tests.simulation.log import Log

LAG_MAX = 120.0
UNKNOWN = -1


def rules(topic: Topic) -> PartitionRules:
    """The settings of the topic."""
    return PartitionRules(int(topic.configs["min.insync.replicas"]), topic.configs["unclean"] == "true")


@dataclass
class Follower:
    """What the leader knows of one follower."""

    end: int = UNKNOWN
    caught_up: float = float("-inf")
    last_fetch: float = float("-inf")
    last_fetch_end: int = 0

    def fetched(self, offset: int, leader_end: int, now: float) -> None:
        if offset >= leader_end:
            self.caught_up = now
        elif offset >= self.last_fetch_end:
            self.caught_up = max(self.caught_up, self.last_fetch)
        self.end, self.last_fetch, self.last_fetch_end = offset, now, leader_end


@dataclass
class Leading:
    """`planted` names the rules that are broken on purpose."""

    partition: Partition
    me: int
    log: Log
    rules: PartitionRules
    flushed: bool
    planted: frozenset[str]
    began: float
    pending: IsrProposal | None = None
    followers: dict[int, Follower] = field(default_factory=dict)
    waiting: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = self.log.end
        for broker in self.partition.isr:
            self.followers[broker] = Follower(caught_up=self.began)

    @property
    def min_isr(self) -> int:
        return effective_min_isr(self.partition.replicas, self.rules)

    def update(self, partition: Partition, rules: PartitionRules) -> None:
        """The same epoch, another state."""
        self.partition, self.rules = partition, rules
        if self.pending is not None and partition.partition_epoch > self.pending.partition_epoch:
            self.pending = None

    def next_high_watermark(self) -> int:
        """Where the high watermark may go: every member of the ISR, of now and of what is proposed, has it."""
        if len(self.partition.isr) < self.min_isr and "committed below min.insync.replicas" not in self.planted:
            return 0
        isr = set(self.partition.isr)
        if self.pending is not None and "only the stored ISR counts" not in self.planted:
            isr |= set(self.pending.new_isr)
        own = (
            self.log.synced
            if self.flushed and "the leader's page cache counts as flushed" not in self.planted
            else self.log.end
        )
        return min(
            [own, *(self.followers[broker].end if broker in self.followers else UNKNOWN for broker in isr - {self.me})]
        )

    def fetched(self, replica: int, offset: int, now: float) -> IsrProposal | None:
        """A replica fetched from `offset`: who has reached the high watermark of this epoch joins the ISR."""
        follower = self.followers.setdefault(replica, Follower())
        follower.fetched(offset, self.log.end, now)
        reached = self.log.high_watermark
        if "joins before the epoch's first record" not in self.planted:
            reached = max(reached, self.start)
        if self.pending is None and replica not in self.partition.isr and offset >= reached:
            return self._propose({*self.partition.isr, replica})
        return None

    def lagging(self, now: float) -> IsrProposal | None:
        """The ISR without who has not been at the end for too long."""
        slow = {
            broker
            for broker in self.partition.isr
            if broker != self.me
            and self.followers[broker].end != self.log.end
            and now - self.followers[broker].caught_up > LAG_MAX
        }
        return self._propose(set(self.partition.isr) - slow) if slow and self.pending is None else None

    def _propose(self, isr: set[int]) -> IsrProposal:
        self.pending = IsrProposal(
            self.partition.partition, self.partition.leader_epoch, self.partition.partition_epoch, tuple(sorted(isr))
        )
        return self.pending
