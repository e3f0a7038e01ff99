"""The offsets of consumer groups in the target: what a group has read in the source, it need not read again in the copy.

An offset is the same in both clusters, or the place in the copy where that reader goes on. It is committed in the target where the group has no members there, never behind the end of
the copy, and never back: a group that has gone further in the target stays there. Share groups keep no such offsets.
"""

import re
from collections.abc import Callable, Mapping

from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.groups import NO_OFFSET, Partition
from pylog_spark.mirror.notices import Notices
from pylog_spark.results.groups import GroupListing

_SHARE = "share"
_CONSUMERS = ("consumer", "")
#: Errors of whole clusters, which are tried again with everything else.
_OF_CLUSTERS = ("UNREACHABLE", "TIMED_OUT", "CLOSED", "TOKEN_UNAVAILABLE")


class GroupOffsets:
    """Keeps groups' offsets in the target.

    Parameters
    ----------
    source, target : Admin
        Of both clusters.
    pattern : re.Pattern
        Matches the whole names of the groups.
    notices : Notices
        Takes what the user should know.
    """

    def __init__(self, source: Admin, target: Admin, pattern: re.Pattern[str], notices: Notices) -> None:
        self._source = source
        self._target = target
        self._pattern = pattern
        self._notices = notices
        #: What the target has, by its last answer or our last change.
        self._there: dict[str, dict[Partition, int]] = {}

    def follow(self, in_copies: Callable[[Partition, int], int | None]) -> None:
        """Commit in the target what the source's groups have committed since. `in_copies`: as `Copies.in_copies` gives it."""
        news = {}
        for listing in self._source.groups():
            if self._is_wanted(listing):
                offsets = self._of(self._source, listing.group_id)
                found = {at: in_copies(at, offset) for at, offset in offsets.items()}
                wanted = {at: offset for at, offset in found.items() if offset is not None}
                there = self._there.get(listing.group_id, {})
                if later := {at: offset for at, offset in wanted.items() if offset > there.get(at, NO_OFFSET)}:
                    news[listing.group_id] = later
        for description in self._target.describe_groups(sorted(news)) if news else ():
            # A group that the target does not know has no members.
            if not description.members:
                self._commit(description.group_id, news[description.group_id])

    def _is_wanted(self, listing: GroupListing) -> bool:
        is_of_consumers = listing.protocol_type in _CONSUMERS and listing.type.lower() != _SHARE
        return is_of_consumers and bool(self._pattern.fullmatch(listing.group_id))

    def _of(self, admin: Admin, group: str) -> dict[Partition, int]:
        try:
            return admin.group_offsets(group)
        except LogError as error:
            if error.kind in _OF_CLUSTERS:
                raise
            self._notices.once(f"group {group}", f"the offsets of group {group} are not copied: {error.sentence}")
            return {}

    def _commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        present = self._of(self._target, group)
        ahead = {at: offset for at, offset in offsets.items() if offset > present.get(at, NO_OFFSET)}
        try:
            if ahead:
                self._target.alter_group_offsets(group, ahead)
        except LogError as error:
            if error.kind in _OF_CLUSTERS:
                raise
            # Mostly a member that has come meanwhile.
            self._notices.once(f"group {group}", f"the offsets of group {group} are not copied: {error.sentence}")
            return
        self._there[group] = {**self._there.get(group, {}), **present, **ahead}
