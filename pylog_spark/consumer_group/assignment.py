"""Which member of a consumer group owns which partition: Algorithm 1 of the Kafka paper (NetDB 2011). Pure.

Every member computes its own share from the same two registries (members, partitions), so there is no leader that assigns. Members
may see different states of the registries for a while. Still no two of them own a partition: a member owns it by creating a node,
which only one member can create, and it claims a partition only after its release.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pylog_spark.topic_partition import TopicPartition


def share(
    member: str, members: Mapping[str, Collection[str]], partitions: Mapping[str, Collection[int]]
) -> set[TopicPartition]:
    """Give the partitions that belong to `member`.

    Of each topic, both the partitions and the members that subscribe to it are sorted. Each member takes the same number of
    consecutive partitions; when they cannot be divided evenly, the first members take one more.

    Parameters
    ----------
    member : str
        The member. If it is not in `members`, its share is empty.
    members : mapping of str to collection of str
        The topics that each member subscribes to.
    partitions : mapping of str to collection of int
        The partitions of each topic that exists.
    """
    mine: set[TopicPartition] = set()
    for topic in members.get(member, ()):
        sharers = sorted(each for each, topics in members.items() if topic in topics)
        present = sorted(partitions.get(topic, ()))
        each, more = divmod(len(present), len(sharers))
        index = sharers.index(member)
        first = index * each + min(index, more)
        mine.update(TopicPartition(topic, number) for number in present[first : first + each + (index < more)])
    return mine


@dataclass(frozen=True, slots=True)
class Step:
    """What a member does next: first it releases partitions, then it claims others. All other partitions stay as they are."""

    release: frozenset[TopicPartition]
    claim: frozenset[TopicPartition]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self.release and not self.claim


def next_step(
    member: str,
    owned: Collection[TopicPartition],
    members: Mapping[str, Collection[str]],
    partitions: Mapping[str, Collection[int]],
) -> Step:
    """Say what `member` has to release and to claim to own its share.

    In the paper a member releases all partitions and claims its whole share anew. Here it keeps the partitions that stay in its share.
    For the other members that makes no difference: they may not claim these in either case.
    """
    mine = share(member, members, partitions)
    return Step(frozenset(owned) - mine, frozenset(mine) - frozenset(owned))
