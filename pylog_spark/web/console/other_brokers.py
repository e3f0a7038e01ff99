"""Where the logs of partitions end that this broker has no replica of, as other brokers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pylog_spark.client.admin import LATEST, Admin
from pylog_spark.client.errors import LogError

Partition = tuple[str, int]
# The history is drawn every few seconds; what takes longer is left out of it.
_TIMEOUT_MS = "3000"


def ends_of(admin: Admin, partitions: Sequence[Partition]) -> dict[Partition, int | None]:
    """Give where each partition that is there ends; None where nobody says now. Raises `LogError` when no topic can be asked for."""
    topics = admin.topics(sorted({topic for topic, _ in partitions})) if partitions else []
    leaders = {(each.name, part.partition): part.leader for each in topics for part in each.partitions}
    there = [partition for partition in partitions if partition in leaders]
    asked = [partition for partition in there if leaders[partition] >= 0]
    try:
        found = admin.offsets([(*each, LATEST) for each in asked]) if asked else []
    except LogError:
        # A leader changes, or a topic is not the user's to see.
        found = []
    known = {(each.topic, each.partition): each.offset for each in found}
    return {partition: known.get(partition) for partition in there}


class Ends:
    """Asks by the server's own client, which is made when it is first needed. Not thread-safe.

    Parameters
    ----------
    client : mapping of str to str
        Its settings.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self._config = {**client, "default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS}
        self._admin: Admin | None = None

    def of(self, partitions: Sequence[Partition]) -> dict[Partition, int | None]:
        """As `ends_of`; None for all of them while nobody can be asked."""
        try:
            if self._admin is None:
                self._admin = Admin(self._config["bootstrap.servers"], self._config)
            return ends_of(self._admin, partitions)
        except LogError:
            return dict.fromkeys(partitions)

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close()
