"""What a producer is told of its records and its transaction."""

from dataclasses import dataclass
from typing import NamedTuple

from pylog_spark.topic_partition import TopicPartition


class OffsetSpan(NamedTuple):
    """The first and the last offset of some records of a partition; -1 where the broker gave none (``acks=0``)."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FlushResult:
    """All that a producer has written since its first record.

    Attributes
    ----------
    records : int
        How many were acknowledged.
    bytes : int
        Of their batches, as they were sent.
    offsets : dict of TopicPartition to OffsetSpan
        Where they are; others' records may lie between them.
    """

    records: int
    bytes: int
    offsets: dict[TopicPartition, OffsetSpan]


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who writes a transaction.

    Attributes
    ----------
    producer_id, producer_epoch : int
        As the brokers know it.
    """

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """What ends a transaction through `Client.end_transactions`, from anywhere.

    Attributes
    ----------
    transactional_id, producer_id, producer_epoch : str, int, int
        Which.
    prepared : bool
        Whether it never times out and only these end it; else the brokers do not offer that (KIP-939), and it stays an ordinary one.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    prepared: bool
