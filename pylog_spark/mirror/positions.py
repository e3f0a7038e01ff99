"""How far a mirror into Apache Kafka is, in the target: the topic `__pylog_mirror_offsets`.

The copies there have offsets of their own, so the mirror writes the source's offsets behind what it has copied, in the same transaction
as the records: both are there, or neither. Format (a version is in the value; others are refused): compacted, one partition; key
``{"source": CLUSTER_ID, "topic": NAME, "partition": N}``, value ``{"version": 1, "topicId": ID, "offset": NEXT, "inCopy": NEXT_THERE}``. Partition -1 says that the topic is
a copy, and of which topic. Not thread-safe.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.client.admin import EARLIEST, LATEST, Admin
from pylog_spark.client.consumer import read_records, record_reader
from pylog_spark.client.errors import LogError
from pylog_spark.client.producer import record_batch

if TYPE_CHECKING:
    import pyarrow as pa

#: The topic.
TOPIC = "__pylog_mirror_offsets"
#: The partition of what is said of a whole topic.
WHOLE = -1
_VERSION = 1
_REPLICAS = 3
_POLL_MS = 1_000


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition is copied: every record of `topic_id` before `offset`, an offset of the source. `in_copy` is the offset behind the last
    one in the copy; None before the first one."""

    topic_id: str
    offset: int
    in_copy: int | None = None


class Positions:
    """What the topic says of one source, as far as it is read.

    Parameters
    ----------
    admin : Admin
        Of the target.
    client : mapping of str to str
        Settings of a client of the target, ``bootstrap.servers`` among them.
    source_id : str
        The id of the cluster that is copied.
    """

    def __init__(self, admin: Admin, client: Mapping[str, str], source_id: str) -> None:
        self._admin, self._source_id = admin, source_id
        self._client = {**client, "isolation.level": "read_committed"}
        self._read_until, self._topic_id = -1, ""
        self._known: dict[tuple[str, int], Position] = {}

    def make(self) -> None:
        """Create the topic if it is not there. Raises `LogError`."""
        (found,) = self._admin.topics([TOPIC])
        if found.error == "UNKNOWN_TOPIC_OR_PARTITION":
            replicas = min(_REPLICAS, len(self._admin.cluster().brokers))
            try:
                self._admin.create_topic(TOPIC, 1, replicas, {"cleanup.policy": "compact"})
            except LogError as error:
                if error.kind != "TOPIC_ALREADY_EXISTS":
                    raise

    def catch_up(self) -> None:
        """Read what is committed there now. Raises `LogError`, also for what another version has written."""
        (found,) = self._admin.topics([TOPIC])
        if found.error == "UNKNOWN_TOPIC_OR_PARTITION":
            self._known, self._read_until, self._topic_id = {}, -1, ""
            return
        if found.topic_id != self._topic_id or self._read_until < 0:
            self._known, self._topic_id = {}, found.topic_id
            self._read_until = self._admin.offsets([(TOPIC, 0, EARLIEST)])[0].offset
        end = self._admin.offsets([(TOPIC, 0, LATEST)], "read_committed")[0].offset
        if self._read_until >= end:
            return
        reader = record_reader(self._client, (TOPIC, 0), self._read_until, end, topic_id=found.topic_id)
        try:
            while not reader.at_end:
                for record in read_records(TOPIC, reader, _POLL_MS):
                    self._apply(record.key, record.value)
        finally:
            reader.stop()
        self._read_until = end

    def of(self, topic: str, partition: int) -> Position | None:
        """Give what is known of a partition."""
        return self._known.get((topic, partition))

    def topics(self) -> dict[str, str]:
        """Give the topics that are copies of this source's, and the ids of those."""
        return {topic: at.topic_id for (topic, partition), at in self._known.items() if partition == WHOLE}

    def partitions(self) -> dict[tuple[str, int], int]:
        """Give how far each partition is."""
        return {key: at.offset for key, at in self._known.items() if key[1] != WHOLE}

    def rows(self, positions: Mapping[tuple[str, int], Position]) -> "pa.RecordBatch":
        """Give the records that say this."""
        return record_batch(list(self._rows(positions)))

    def _rows(
        self, positions: Mapping[tuple[str, int], Position]
    ) -> Iterable[tuple[bytes, bytes, None, None, tuple[()]]]:
        for (topic, partition), at in positions.items():
            key = {"source": self._source_id, "topic": topic, "partition": partition}
            value = {"version": _VERSION, "topicId": at.topic_id, "offset": at.offset, "inCopy": at.in_copy}
            yield json.dumps(key).encode(), json.dumps(value).encode(), None, None, ()

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        try:
            place = json.loads(key or b"")
            if place["source"] != self._source_id:
                return
            found = None if value is None else json.loads(value)
            if found is not None and found["version"] != _VERSION:
                raise LogError(
                    "UNSUPPORTED_VERSION",
                    f"The topic {TOPIC} of the target was written by another version of pylog mirror: update this one.",
                )
            at = (str(place["topic"]), int(place["partition"]))
            if found is None:
                self._known.pop(at, None)
            else:
                in_copy = found["inCopy"]
                self._known[at] = Position(
                    str(found["topicId"]), int(found["offset"]), None if in_copy is None else int(in_copy)
                )
        except (ValueError, KeyError, TypeError) as error:
            raise LogError(
                "UNSUPPORTED_VERSION",
                f"The topic {TOPIC} of the target has a record that is not pylog mirror's ({error!r}): nobody else may write to it.",
            ) from error
