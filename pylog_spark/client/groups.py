"""Consumer groups and share groups as an administrator sees them; a part of `Admin`."""

from collections.abc import Sequence
from typing import Any

from pylog_spark.client.requests import Requests, raise_if_failed, sole

NO_OFFSET = -1


class GroupAdmin(Requests):
    """Groups and their offsets. What concerns a single group or partition comes back in its result, as in `Admin`."""

    def groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[dict[str, Any]]:
        """List groups by name: {group_id, protocol_type, state, type}; `states` and `types` are Kafka's words."""
        return self._request("list_groups", states=list(states), types=list(types))

    def group(self, name: str) -> dict[str, Any]:
        """Describe one group: {group_id, type, state, protocol_type, assignor, coordinator, members: [{member_id,
        instance_id, client_id, host, partitions: [[topic, partition]]}]}; type: classic, consumer or share, whose members may read the
        same partition. Raises `LogError` when it is not there."""
        return sole(self._request("describe_groups", names=[name]))

    def describe_groups(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """As `group`, for several; each has ``error`` and ``message``."""
        return self._request("describe_groups", names=list(names))

    def delete_groups(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Delete groups that have no members, with their offsets: {name, error, message}."""
        return self._request("delete_groups", names=list(names))

    def group_offsets(self, name: str, *, stable: bool = False) -> dict[tuple[str, int], int]:
        """(topic, partition) -> the offset at which the group goes on. Raises `LogError` for an error of the group.

        With `stable`, an offset that an open transaction may change is an error instead of the last known one.
        """
        found = self._request("group_offsets", group=name, stable=stable)
        for one in found:
            raise_if_failed(one)
        return {(one["topic"], one["partition"]): one["offset"] for one in found if one["offset"] != NO_OFFSET}

    def alter_group_offsets(self, name: str, offsets: dict[tuple[str, int], int]) -> None:
        """Set the offsets of a group without members. Raises `LogError` when the group or a partition refuses."""
        wanted = [(topic, partition, offset, "") for (topic, partition), offset in offsets.items()]
        for result in self._request("alter_group_offsets", group=name, offsets=wanted):
            raise_if_failed(result)

    def share_group_offsets(self, name: str) -> dict[tuple[str, int], tuple[int, int | None]]:
        """(topic, partition) -> the first offset that a share group has not done with, and how many records from there on it has not
        (None: the brokers do not tell). Raises `LogError` for an error of the group."""
        found = self._request("share_group_offsets", group=name)
        for one in found:
            raise_if_failed(one)
        return {
            (one["topic"], one["partition"]): (one["offset"], None if one["lag"] < 0 else one["lag"])
            for one in found
            if one["offset"] != NO_OFFSET
        }

    def alter_share_group_offsets(self, name: str, offsets: dict[tuple[str, int], int]) -> None:
        """Set the start offsets of a share group without members; what is before is done with, what is behind is delivered as if for the first
        time. Raises `LogError` when the group or a partition refuses."""
        wanted = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        for result in self._request("alter_share_group_offsets", group=name, offsets=wanted):
            raise_if_failed(result)

    def delete_group_offsets(self, name: str, partitions: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
        """Forget where the group stands in `partitions`: {topic, partition, error, message}."""
        return self._request("delete_group_offsets", group=name, partitions=list(partitions))
