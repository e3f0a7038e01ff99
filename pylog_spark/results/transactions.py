"""Transactional ids, the producers of partitions, and what became of a transaction to end."""

from dataclasses import dataclass

from pylog_spark.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """One transactional id in a list.

    Attributes
    ----------
    transactional_id : str
        The id.
    producer_id : int
        Of the producer that holds it.
    state : str
        Kafka's word, such as ``Ongoing``.
    coordinator : int
        The broker that looks after it.
    """

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """The last transaction of a transactional id.

    Attributes
    ----------
    transactional_id : str
        The id.
    state : str
        Kafka's word, such as ``Ongoing``.
    producer_id, producer_epoch : int
        Of the producer that holds it.
    timeout_ms : int
        After how long the brokers abort it.
    start_time_ms : int
        When it began, by its coordinator's clock; -1 when it has not.
    partitions : tuple of TopicPartition
        What it has written to.
    coordinator : int
        The broker that looks after it.
    error, message : str or None
        Kafka's name of why it cannot be described, and the sentence.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: tuple[TopicPartition, ...]
    coordinator: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer of a partition, as its leader remembers it.

    Attributes
    ----------
    producer_id, producer_epoch : int
        Who.
    last_sequence : int
        Of the last record it wrote.
    last_timestamp_ms : int
        Of the last batch it wrote.
    coordinator_epoch : int
        Of the coordinator that ended its last transaction; -1 when none has.
    transaction_start_offset : int
        Where its open transaction begins; -1 when it has none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True)
class PartitionProducers:
    """Who writes to one partition.

    Attributes
    ----------
    topic, partition : str, int
        Which.
    producers : tuple of ProducerState
        Those with a producer id.
    error, message : str or None
        Kafka's name of why they are not known, and the sentence.
    """

    topic: str
    partition: int
    producers: tuple[ProducerState, ...]
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class FenceProducerResult:
    """What became of a producer to fence.

    Attributes
    ----------
    transactional_id : str
        The id that it held.
    producer_id, producer_epoch : int
        Who may go on under the id; -1 with an error.
    error, message : str or None
        Kafka's name of why it was refused, and the sentence.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class EndTransactionResult:
    """What became of a transaction to end.

    Attributes
    ----------
    transactional_id : str
        Which.
    error, message : str or None
        Kafka's name of why it did not end as wanted, and the sentence.
    """

    transactional_id: str
    error: str | None
    message: str | None
