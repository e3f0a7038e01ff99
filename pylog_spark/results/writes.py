"""What a producer learns about its records and its transaction."""

from dataclasses import dataclass
from typing import NamedTuple

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown
from pylog_spark.topic_partition import TopicPartition


class OffsetSpan(NamedTuple):
    """The first and the last offset of some records of a partition; -1 where the broker gave none (``acks=0``)."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FlushResult(Display):
    """All that a producer has written since its first record.

    Attributes
    ----------
    records : int
        How many records were acknowledged.
    bytes : int
        The bytes of their batches, as they were sent.
    offsets : dict of TopicPartition to OffsetSpan
        The first and the last offset in each partition; records of other producers may lie between them.
    """

    records: int
    bytes: int
    offsets: dict[TopicPartition, OffsetSpan]

    def _shown(self) -> Shown:
        rows = [(topic, partition, span.first, span.last) for (topic, partition), span in self.offsets.items()]
        title = f"{self.records:,} records acknowledged, {self.bytes:,} bytes"
        return Shown(title, ("topic", "partition", "first offset", "last offset"), rows)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """The producer of a transaction.

    Attributes
    ----------
    producer_id, producer_epoch : int
        Its id and epoch, as the brokers know them.
    """

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A transaction that any process can end through `Client.end_transactions`.

    Attributes
    ----------
    transactional_id, producer_id, producer_epoch : str, int, int
        The arguments that end it.
    prepared : bool
        Whether it never times out and only these end it. False where brokers do not offer that (KIP-939): it is an ordinary
        transaction then.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    prepared: bool
