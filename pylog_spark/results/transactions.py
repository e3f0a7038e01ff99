"""Transactional ids, the producers of partitions, and the results of ending a transaction."""

from dataclasses import dataclass

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown
from pylog_spark.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """One transactional id in a list.

    Attributes
    ----------
    transactional_id : str
        The id.
    producer_id : int
        The id of its producer.
    state : str
        Kafka's name, such as ``Ongoing``.
    coordinator : int
        The broker that is its coordinator.
    """

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription(Display):
    """The last transaction of a transactional id.

    Attributes
    ----------
    transactional_id : str
        The id.
    state : str
        Kafka's name, such as ``Ongoing``.
    producer_id, producer_epoch : int
        The id and the epoch of its producer.
    timeout_ms : int
        After how many milliseconds the brokers abort it.
    start_time_ms : int
        When it began, by its coordinator's clock, in milliseconds since 1970; -1 when it has not begun.
    partitions : tuple of TopicPartition
        The partitions that it has written to.
    coordinator : int
        The broker that is its coordinator.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
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

    def _shown(self) -> Shown:
        rows = [(each.topic, each.partition) for each in self.partitions]
        about = self.error or f"{self.state}, producer {self.producer_id} of epoch {self.producer_epoch}"
        return Shown(f"Transaction {self.transactional_id}: {about}", ("topic", "partition"), rows)


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One producer of a partition, as its leader remembers it.

    Attributes
    ----------
    producer_id, producer_epoch : int
        The producer's id and epoch.
    last_sequence : int
        The sequence number of the last record that it wrote.
    last_timestamp_ms : int
        The timestamp of the last batch that it wrote, in milliseconds since 1970.
    coordinator_epoch : int
        The epoch of the coordinator that ended its last transaction; -1 when none has ended.
    transaction_start_offset : int
        The first offset of its open transaction; -1 when it has none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True)
class PartitionProducers:
    """The producers that write to one partition.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    producers : tuple of ProducerState
        The producers with a producer id.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    topic: str
    partition: int
    producers: tuple[ProducerState, ...]
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class FenceProducerResult:
    """The result of fencing a producer.

    Attributes
    ----------
    transactional_id : str
        The producer's transactional id.
    producer_id, producer_epoch : int
        The producer id and the epoch that the transactional id has now; -1 with an error.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class EndTransactionResult:
    """The result of ending a transaction.

    Attributes
    ----------
    transactional_id : str
        The transaction's id.
    error, message : str or None
        Kafka's name of the error, and its sentence; None when it ended as wanted.
    """

    transactional_id: str
    error: str | None
    message: str | None
