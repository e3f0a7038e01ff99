"""Groups, their members and their offsets."""

from dataclasses import dataclass

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
        Kafka's words, such as ``Stable`` and ``classic``.
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
        Who it is, what it calls itself, and where it connects from.
    instance_id : str or None
        Of a static member.
    partitions : tuple of TopicPartition
        What it reads.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group, of whichever kind.

    Attributes
    ----------
    group_id : str
        Its name.
    type : str
        ``classic``, ``consumer`` or ``share``; members of a share group may read the same partition.
    state, protocol_type, assignor : str
        Kafka's words.
    coordinator : int
        The broker that looks after it.
    members : tuple of MemberDescription
        Who is in it.
    error, message : str or None
        Kafka's name of why it cannot be described, and the sentence.
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


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """Where a group goes on in a partition; -1 where it has no offset.

    Attributes
    ----------
    topic, partition : str, int
        Which.
    offset : int
        The offset of the next record.
    metadata : str or None
        What the consumer stored with it.
    error : str or None
        Kafka's name of why it is not known.
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
    """Where a share group goes on in a partition, as brokers say it; see `SharePartitionOffsetInfo`.

    Attributes
    ----------
    topic, partition : str, int
        Which.
    offset, lag : int
        -1 where they are not known.
    error, message : str or None
        Kafka's name of why they are not known, and the sentence.
    """

    topic: str
    partition: int
    offset: int
    lag: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class SharePartitionOffsetInfo:
    """Where a share group goes on in a partition.

    Attributes
    ----------
    start_offset : int
        The first offset that it has not done with.
    lag : int or None
        How many records from there on it has not done with; None when the brokers do not tell.
    """

    start_offset: int
    lag: int | None
