"""Replicas as an administrator sees them; a part of `Admin`."""

from collections.abc import Mapping, Sequence

from pylog_spark.client.requests import Requests, sole
from pylog_spark.results.replicas import (
    FeatureLevel,
    PartitionReassignment,
    UnregisterBrokerResult,
    UpdateFeatureResult,
)
from pylog_spark.results.topics import Node, PartitionResult

Partition = tuple[str, int]


class ReplicaAdmin(Requests):
    """Where replicas are, moving them, electing leaders. Partitions are (topic, number)."""

    def reassign(self, moves: Mapping[Partition, Sequence[int] | None]) -> list[PartitionResult]:
        """Begin to move replicas to the brokers named, the preferred leader first; None ends a move, back to where it began.

        Returns
        -------
        list of PartitionResult
            For each partition. The records are copied afterwards, see `reassignments`.
        """
        asked = [(topic, partition, None if to is None else list(to)) for (topic, partition), to in moves.items()]
        return self._request(PartitionResult, "reassign_partitions", moves=asked)

    def reassignments(self) -> list[PartitionReassignment]:
        """The moves that are under way."""
        return self._request(PartitionReassignment, "list_reassignments")

    def elect_leaders(
        self, partitions: Sequence[Partition] | None = None, *, unclean: bool = False
    ) -> list[PartitionResult]:
        """Let the first of each partition's replicas lead (None: of all partitions).

        With `unclean`, partitions without a leader get any live replica: committed records that it lacks are lost.

        Returns
        -------
        list of PartitionResult
            Where a leader changed, or could not.
        """
        asked = None if partitions is None else list(partitions)
        return self._request(PartitionResult, "elect_leaders", partitions=asked, unclean=unclean)

    def dead_brokers(self) -> list[Node]:
        """The brokers that belong to the cluster and do not live."""
        return self._request(Node, "dead_brokers")

    def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker that is gone for good. Raises `LogError` when it lives, or is not known."""
        sole(self._request(UnregisterBrokerResult, "unregister_broker", broker=broker_id))

    def features(self) -> list[FeatureLevel]:
        """The levels of the cluster's features."""
        return self._request(FeatureLevel, "features")

    def raise_level(self, feature: str, level: int, *, validate_only: bool = False) -> None:
        """Raise the cluster's level of a feature. Raises `LogError` when a broker does not understand it, or it is lower."""
        sole(
            self._request(
                UpdateFeatureResult, "update_features", feature=feature, level=level, validate_only=validate_only
            )
        )
