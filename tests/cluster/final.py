"""The end of a run: everything is healed, and all of every partition is read."""

import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.cluster.checker import acknowledged
from tests.harness.history import FinalRead, GroupOffset, History, Place
from tests.harness.load import QUICK, READER, records
from tests.harness.mixed import FINAL, LAST_TAKER, Taker
from tests.harness.security import Way
from tests.harness.waiting import happens, turns, until

DEADLINE_S = 60.0
#: What a leader, or who was one, answers for a moment after an election, and what librdkafka says while it has heard of none; clients ask again.
_LEADER_IS_NEW = (
    KafkaError._NOENT,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)


def read_everything(way: Way, history: History, places: Sequence[Place]) -> None:
    """Note what is in all places, once for each isolation level. Raises AssertionError when the end cannot be reached."""
    for committed_only in (False, True):
        for place, some in read(way, places, committed_only).items():
            history.finals.append(FinalRead(place, committed_only, tuple(some)))


def ends_of(way: Way, places: Sequence[Place], committed_only: bool) -> dict[Place, int]:
    """The end of each partition that readers can see, once its leader can say it."""
    admin = AdminClient({**way.client(FINAL), **QUICK})
    level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    wanted = {TopicPartition(*place): OffsetSpec.latest() for place in places}

    def ends() -> dict[Place, int]:
        asked = admin.list_offsets(wanted, isolation_level=level, request_timeout=DEADLINE_S)
        try:
            return {
                (partition.topic, partition.partition): int(found.result(DEADLINE_S).offset)
                for partition, found in asked.items()
            }
        except KafkaException as error:
            if error.args[0].code() not in _LEADER_IS_NEW:
                raise
            return {}

    return until(ends, f"leaders that know the ends of {places}", DEADLINE_S)


def read(way: Way, places: Sequence[Place], committed_only: bool) -> dict[Place, list[tuple[int, str]]]:
    """(offset, value) of all of some partitions up to their ends."""
    isolation = "read_committed" if committed_only else "read_uncommitted"
    own = {"group.id": FINAL, "enable.partition.eof": True, "isolation.level": isolation}
    consumer = Consumer({**way.client(FINAL), **QUICK, **READER, **own})
    ends = ends_of(way, places, committed_only)
    got: dict[Place, list[tuple[int, str]]] = {place: [] for place in places}
    reached = dict.fromkeys(places, 0)
    try:
        consumer.assign([TopicPartition(*place, 0) for place in places])
        for _ in turns(
            lambda: all(reached[place] >= end for place, end in ends.items()),
            lambda: f"read up to {ends}: {reached}",
            DEADLINE_S,
        ):
            messages = consumer.consume(1000, 0.1)
            for record in records(messages):
                place = (record.topic(), record.partition())
                got[place].append((record.offset(), record.value().decode()))
                reached[place] = record.offset() + 1
            for message in messages:
                if message.error() and message.error().code() == KafkaError._PARTITION_EOF:
                    reached[message.topic(), message.partition()] = message.offset()
    finally:
        consumer.close()
    return got


def group_offsets(way: Way, group: str, places: Iterable[Place]) -> dict[Place, int]:
    """What `group` has committed; places without an offset are left out."""
    consumer = Consumer({**way.client(FINAL), **QUICK, **READER, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(*place) for place in places], DEADLINE_S)
    finally:
        consumer.close()
    return {(partition.topic, partition.partition): partition.offset for partition in found if partition.offset >= 0}


def take_the_rest(way: Way, history: History, group: str, topic: str, places: Sequence[Place]) -> None:
    """Let a member of a share group take what its members have left of `topic`. What is missing in the end is the checker's."""
    last = Taker(LAST_TAKER, way, history, 0, topic, group)
    wanted = {(send.place, send.value) for send in history.sends if send.place in places and acknowledged(send)}

    def all_taken() -> bool:
        last.step()
        return not wanted - {(record.place, record.value) for record in history.taken}

    try:
        happens(all_taken, DEADLINE_S)
    finally:
        last.finish()
    history.shared = {group: places}


def note_groups(way: Way, history: History, group: str, copier: str, mixed: list[Place], source: list[Place]) -> None:
    """Note where the reading group stands, and how far the copier came."""
    began = time.monotonic()
    for place in mixed:
        offset = group_offsets(way, group, [place]).get(place, -1)
        history.group_offsets.append(GroupOffset(group, place, offset, began, time.monotonic(), fetched=True))
    history.copied = group_offsets(way, copier, source)
