"""Groups, their members and their offsets."""

from dataclasses import dataclass

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown, listed
from pylog_spark.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group in a list.

    Attributes
    ----------
    group_id : str
        Its name.
    protocol_type : str
        ``consumer``, ``share``, ``connect``...; empty when it has none.
    state, type : str
        Kafka's names, such as ``Stable`` and ``classic``.
    """

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member of a group.

    Attributes
    ----------
    member_id, client_id, host : str
        The id that the coordinator gave it, its client.id, and the address that it connects from.
    instance_id : str or None
        The group.instance.id of a static member.
    partitions : tuple of TopicPartition
        The partitions that it reads.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription(Display):
    """One group, of any type.

    Attributes
    ----------
    group_id : str
        Its name.
    type : str
        ``classic``, ``consumer`` or ``share``; members of a share group may read the same partition.
    state, protocol_type, assignor : str
        Kafka's names.
    coordinator : int
        The broker that is its coordinator.
    members : tuple of MemberDescription
        Its members.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: tuple[MemberDescription, ...]
    error: str | None
    message: str | None

    def _shown(self) -> Shown:
        rows = [
            (
                each.member_id,
                each.client_id,
                each.host,
                listed(f"{topic}-{partition}" for topic, partition in each.partitions),
            )
            for each in self.members
        ]
        title = f"Group {self.group_id}: {self.error or f'{self.type}, {self.state}, {len(rows)} members'}"
        return Shown(title, ("member", "client", "host", "partitions"), rows)


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A group's committed offset of a partition.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    offset : int
        The offset of the next record to read; -1 when none is committed.
    metadata : str or None
        The text that the consumer stored with it.
    error : str or None
        Kafka's name of the error; None without one.
    """

    topic: str
    partition: int
    offset: int
    metadata: str | None
    error: str | None

    @property
    def message(self) -> str | None:
        """The error as a sentence."""
        return self.error and f"The offset of {self.topic}-{self.partition} is not known: {self.error}."


@dataclass(frozen=True, slots=True)
class ShareGroupOffset:
    """A share group's start offset of a partition, as brokers give it; see `SharePartitionOffsetInfo`.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    offset, lag : int
        -1 where they are not known.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    topic: str
    partition: int
    offset: int
    lag: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class SharePartitionOffsetInfo:
    """A share group's start offset of a partition.

    Attributes
    ----------
    start_offset : int
        The first offset that may still be delivered.
    lag : int or None
        How many records from there on are not acknowledged yet; None when the brokers do not say.
    """

    start_offset: int
    lag: int | None
