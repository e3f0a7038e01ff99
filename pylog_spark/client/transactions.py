"""Transactions as an administrator sees them; a part of `Admin`."""

from collections.abc import Sequence

from pylog_spark.client.requests import Requests, sole
from pylog_spark.results.topics import PartitionResult
from pylog_spark.results.transactions import (
    FenceProducerResult,
    PartitionProducers,
    TransactionDescription,
    TransactionListing,
)

# A duration filter that lets all through.
ANY_DURATION = -1


class TransactionAdmin(Requests):
    """Transactional ids, the producers of partitions, and ending a transaction from outside."""

    def transactions(
        self,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int = ANY_DURATION,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """List transactional ids by name. `duration_ms`: only those whose transaction is open for longer; `pattern`: only ids
        that match this regular expression as a whole."""
        return self._request(
            TransactionListing,
            "list_transactions",
            states=list(states),
            producer_ids=list(producer_ids),
            duration_ms=duration_ms,
            pattern=pattern,
        )

    def transaction(self, transactional_id: str) -> TransactionDescription:
        """Describe one. Raises `LogError` when it is not there."""
        return sole(self.describe_transactions([transactional_id]))

    def describe_transactions(self, transactional_ids: Sequence[str]) -> list[TransactionDescription]:
        """As `transaction`, for several; each has ``error`` and ``message``."""
        return self._request(TransactionDescription, "describe_transactions", names=list(transactional_ids))

    def producers(self, partitions: Sequence[tuple[str, int]]) -> list[PartitionProducers]:
        """Who writes to each partition."""
        return self._request(PartitionProducers, "describe_producers", partitions=list(partitions))

    def abort_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Write an abort marker into one partition, for a transaction that hangs because no coordinator knows of it.
        Raises `LogError` when it is refused."""
        sole(
            self._request(
                PartitionResult,
                "abort_transaction",
                topic=topic,
                partition=partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                # A producer that never had a marker has no epoch of a coordinator.
                coordinator_epoch=max(coordinator_epoch, 0),
            )
        )

    def fence_producer(self, transactional_id: str) -> FenceProducerResult:
        """Abort the id's open transaction and lock out the producer that holds it. Raises `LogError` when it is refused."""
        return sole(self._request(FenceProducerResult, "fence_producers", names=[transactional_id]))
