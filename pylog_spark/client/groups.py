"""An administrator's requests about consumer groups and share groups; a base class of `Admin`."""

from collections.abc import Mapping, Sequence

from pylog_spark.client.requests import Requests, raise_if_failed, sole
from pylog_spark.results.groups import (
    GroupDescription,
    GroupListing,
    GroupOffset,
    ShareGroupOffset,
    SharePartitionOffsetInfo,
)
from pylog_spark.results.topics import NamedResult, PartitionResult

NO_OFFSET = -1

Partition = tuple[str, int]


class GroupAdmin(Requests):
    """Groups and their offsets. Requests about several groups or partitions give a result for each, as in `Admin`."""

    def groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
        """List groups, sorted by name; all, or those in the given `states` and of the given `types`, which have Kafka's names."""
        return self._request(GroupListing, "list_groups", states=list(states), types=list(types))

    def group(self, name: str) -> GroupDescription:
        """Describe one group. Raises `LogError` when it does not exist.

        Parameters
        ----------
        name : str
            The group's name.
        """
        return sole(self.describe_groups([name]))

    def describe_groups(self, names: Sequence[str]) -> list[GroupDescription]:
        """Describe several groups; each description has ``error`` and ``message``.

        Parameters
        ----------
        names : sequence of str
            The groups' names.
        """
        return self._request(GroupDescription, "describe_groups", names=list(names))

    def delete_groups(self, names: Sequence[str]) -> list[NamedResult]:
        """Delete groups that have no members, with their offsets.

        Parameters
        ----------
        names : sequence of str
            The groups' names.
        """
        return self._request(NamedResult, "delete_groups", names=list(names))

    def group_offsets(self, name: str, *, stable: bool = False) -> dict[Partition, int]:
        """Give the committed offset of each partition. Raises `LogError` for an error of the group.

        Parameters
        ----------
        name : str
            The group's name.
        stable : bool
            Whether an offset that an open transaction may change is an error; otherwise the last committed one is given.
        """
        found = self._request(GroupOffset, "group_offsets", group=name, stable=stable)
        for offset in found:
            raise_if_failed(offset)
        return {(offset.topic, offset.partition): offset.offset for offset in found if offset.offset != NO_OFFSET}

    def alter_group_offsets(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Set the committed offsets of a group without members. Raises `LogError` when an offset is refused.

        Parameters
        ----------
        name : str
            The group's name.
        offsets : mapping of (str, int) to int
            Topic and partition -> the offset.
        """
        wanted = [(topic, partition, offset, "") for (topic, partition), offset in offsets.items()]
        for result in self._request(PartitionResult, "alter_group_offsets", group=name, offsets=wanted):
            raise_if_failed(result)

    def share_group_offsets(self, name: str) -> dict[Partition, SharePartitionOffsetInfo]:
        """Give a share group's start offset of each partition. Raises `LogError` for an error of the group.

        Parameters
        ----------
        name : str
            The group's name.
        """
        found = self._request(ShareGroupOffset, "share_group_offsets", group=name)
        for offset in found:
            raise_if_failed(offset)
        return {
            (offset.topic, offset.partition): SharePartitionOffsetInfo(
                offset.offset, None if offset.lag < 0 else offset.lag
            )
            for offset in found
            if offset.offset != NO_OFFSET
        }

    def alter_share_group_offsets(self, name: str, offsets: Mapping[Partition, int]) -> None:
        """Set the start offsets of a share group without members: it delivers no earlier records, and delivers the records from there on
        as if for the first time. Raises `LogError` when an offset is refused.

        Parameters
        ----------
        name : str
            The group's name.
        offsets : mapping of (str, int) to int
            Topic and partition -> the offset.
        """
        wanted = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        for result in self._request(PartitionResult, "alter_share_group_offsets", group=name, offsets=wanted):
            raise_if_failed(result)

    def delete_group_offsets(self, name: str, partitions: Sequence[Partition]) -> list[PartitionResult]:
        """Delete the group's committed offsets of `partitions`.

        Parameters
        ----------
        name : str
            The group's name.
        partitions : sequence of (str, int)
            Topics and the numbers of their partitions.
        """
        return self._request(PartitionResult, "delete_group_offsets", group=name, partitions=list(partitions))
