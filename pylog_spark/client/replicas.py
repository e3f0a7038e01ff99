"""An administrator's requests about replicas, leaders and brokers; a base class of `Admin`."""

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
        """Begin to move replicas.

        Parameters
        ----------
        moves : mapping of (str, int) to sequence of int or None
            Topic and partition -> the brokers that are to hold it, the preferred leader first; None cancels the partition's move.

        Returns
        -------
        list of PartitionResult
            One for each partition. The records are copied afterwards, see `reassignments`.
        """
        asked = [(topic, partition, None if to is None else list(to)) for (topic, partition), to in moves.items()]
        return self._request(PartitionResult, "reassign_partitions", moves=asked)

    def reassignments(self) -> list[PartitionReassignment]:
        """List the moves that are under way."""
        return self._request(PartitionReassignment, "list_reassignments")

    def elect_leaders(
        self, partitions: Sequence[Partition] | None = None, *, unclean: bool = False
    ) -> list[PartitionResult]:
        """Make the first replica of each partition its leader.

        Parameters
        ----------
        partitions : sequence of (str, int), optional
            Topics and the numbers of their partitions; all when not given.
        unclean : bool
            Whether a partition without a leader gets any live replica as leader: committed records that it lacks are lost.

        Returns
        -------
        list of PartitionResult
            One for each partition whose leader changed, or should have changed and could not.
        """
        asked = None if partitions is None else list(partitions)
        return self._request(PartitionResult, "elect_leaders", partitions=asked, unclean=unclean)

    def dead_brokers(self) -> list[Node]:
        """List the brokers that belong to the cluster and do not run."""
        return self._request(Node, "dead_brokers")

    def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker from the cluster that will not come back. Raises `LogError` when it runs, or does not belong to the cluster.

        Parameters
        ----------
        broker_id : int
            Its number.
        """
        sole(self._request(UnregisterBrokerResult, "unregister_broker", broker=broker_id))

    def features(self) -> list[FeatureLevel]:
        """List the levels of the cluster's features."""
        return self._request(FeatureLevel, "features")

    def raise_level(self, feature: str, level: int, *, validate_only: bool = False) -> None:
        """Raise the cluster's level of a feature. Raises `LogError` when a broker does not understand it, or it is lower.

        Parameters
        ----------
        feature, level : str, int
            The feature's name and the level, as in `features`.
        validate_only : bool
            Only check whether the brokers would do it.
        """
        sole(
            self._request(
                UpdateFeatureResult, "update_features", feature=feature, level=level, validate_only=validate_only
            )
        )
