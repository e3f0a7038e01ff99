"""Which member of a consumer group owns which partition: Algorithm 1 of the Kafka paper (NetDB 2011). Pure.

Every member works its own share out from the same two registries (members, partitions), so nobody assigns it. Members
may see different states of the registries for a while; what keeps two of them off one partition is that a partition is
owned by creating a node that only one can create, and that a member claims nothing that it has not seen released.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pylog_spark.topic_partition import TopicPartition


def share(
    member: str, members: Mapping[str, Collection[str]], partitions: Mapping[str, Collection[int]]
) -> set[TopicPartition]:
    """Give the partitions that are `member`'s.

    Of each topic, both partitions and the members that subscribe to it are sorted; each member takes as many partitions in
    a row, and the first ones take one more when it does not come out even.

    Parameters
    ----------
    member : str
        Whose share. One that is not in `members` has none.
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
    """What a member does next: first it releases, then it claims. What is in neither stays as it is."""

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

    The paper releases everything and claims the share anew. Here a member keeps what stays its own. For the others that is the
    same: they may not claim it in either case.
    """
    mine = share(member, members, partitions)
    return Step(frozenset(owned) - mine, frozenset(mine) - frozenset(owned))
