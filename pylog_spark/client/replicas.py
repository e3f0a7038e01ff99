"""Replicas as an administrator sees them; a part of `Admin`."""

from collections.abc import Mapping, Sequence
from typing import Any

from pylog_spark.client.requests import Requests, raise_if_failed

Partition = tuple[str, int]


class ReplicaAdmin(Requests):
    """Where replicas are, moving them, electing leaders. Partitions are (topic, number)."""

    def reassign(self, moves: Mapping[Partition, Sequence[int] | None]) -> list[dict[str, Any]]:
        """Begin to move replicas to the brokers named, the preferred leader first; None ends a move, back to where it began.

        Returns
        -------
        list of dict
            For each partition {topic, partition, error, message}. The records are copied afterwards, see `reassignments`.
        """
        asked = [(topic, partition, None if to is None else list(to)) for (topic, partition), to in moves.items()]
        return self._request("reassign_partitions", moves=asked)

    def reassignments(self) -> list[dict[str, Any]]:
        """The moves that are under way: {topic, partition, replicas, adding, removing}."""
        return self._request("list_reassignments")

    def elect_leaders(
        self, partitions: Sequence[Partition] | None = None, *, unclean: bool = False
    ) -> list[dict[str, Any]]:
        """Let the first of each partition's replicas lead (None: of all partitions).

        With `unclean`, partitions without a leader get any live replica: committed records that it lacks are lost.

        Returns
        -------
        list of dict
            {topic, partition, error, message} where a leader changed, or could not.
        """
        asked = None if partitions is None else list(partitions)
        return self._request("elect_leaders", partitions=asked, unclean=unclean)

    def dead_brokers(self) -> list[dict[str, Any]]:
        """The brokers that belong to the cluster and do not live: {node_id, host, port, rack}."""
        return self._request("dead_brokers")

    def unregister_broker(self, broker_id: int) -> None:
        """Forget a broker that is gone for good. Raises `LogError` when it lives, or is not known."""
        (result,) = self._request("unregister_broker", broker=broker_id)
        raise_if_failed(result)

    def features(self) -> list[dict[str, Any]]:
        """The levels of the cluster's features: {feature, level, min, max}; the last two of the broker that was asked."""
        return self._request("features")

    def raise_level(self, feature: str, level: int, *, validate_only: bool = False) -> None:
        """Raise the cluster's level of a feature. Raises `LogError` when a broker does not understand it, or it is lower."""
        (result,) = self._request("update_features", feature=feature, level=level, validate_only=validate_only)
        raise_if_failed(result)
