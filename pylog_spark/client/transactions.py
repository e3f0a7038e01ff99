"""An administrator's requests about transactions; a base class of `Admin`."""

from collections.abc import Sequence

from pylog_spark.client.requests import Requests, sole
from pylog_spark.results.topics import PartitionResult
from pylog_spark.results.transactions import (
    FenceProducerResult,
    PartitionProducers,
    TransactionDescription,
    TransactionListing,
)

# A duration filter that leaves out no transaction.
ANY_DURATION = -1


class TransactionAdmin(Requests):
    """Transactional ids, the producers of partitions, and ending a transaction in place of its producer."""

    def transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int = ANY_DURATION,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List transactional ids, sorted by name.

        Parameters
        ----------
        states : sequence of str
            Only transactions in these states, by Kafka's names; all when empty.
        producer_ids : sequence of int
            Only transactions of these producers; all when empty.
        duration_ms : int
            Only transactions that have been open for longer than this.
        pattern : str, optional
            Only ids that match this regular expression as a whole.
        """
        return self._request(
            TransactionListing,
            "list_transactions",
            states=list(states),
            producer_ids=list(producer_ids),
            duration_ms=duration_ms,
            pattern=pattern,
        )

    def transaction(self, transactional_id: str) -> TransactionDescription:
        """Describe one transaction. Raises `LogError` when the brokers do not know the id.

        Parameters
        ----------
        transactional_id : str
            The transactional id.
        """
        return sole(self.describe_transactions([transactional_id]))

    def describe_transactions(self, transactional_ids: Sequence[str]) -> list[TransactionDescription]:
        """Describe several transactions; each description has ``error`` and ``message``.

        Parameters
        ----------
        transactional_ids : sequence of str
            Their transactional ids.
        """
        return self._request(TransactionDescription, "describe_transactions", names=list(transactional_ids))

    def producers(self, partitions: Sequence[tuple[str, int]]) -> list[PartitionProducers]:
        """Describe the producers that write to each partition.

        Parameters
        ----------
        partitions : sequence of (str, int)
            Topics and the numbers of their partitions.
        """
        return self._request(PartitionProducers, "describe_producers", partitions=list(partitions))

    def abort_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Write an abort marker into one partition, for a transaction that hangs because no coordinator knows it.
        Raises `LogError` when the broker refuses it.

        Parameters
        ----------
        topic, partition : str, int
            Where the transaction hangs.
        producer_id, producer_epoch : int
            The producer, as `producers` describes it.
        coordinator_epoch : int
            The epoch of its coordinator, as `producers` gives it.
        """
        sole(
            self._request(
                PartitionResult,
                "abort_transaction",
                topic=topic,
                partition=partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                # A producer without any marker has no coordinator epoch.
                coordinator_epoch=max(coordinator_epoch, 0),
            )
        )

    def fence_producer(self, transactional_id: str) -> FenceProducerResult:
        """Abort the id's open transaction and fence its producer. Raises `LogError` when the brokers refuse it.

        Parameters
        ----------
        transactional_id : str
            The transactional id.
        """
        return sole(self._request(FenceProducerResult, "fence_producers", names=[transactional_id]))
