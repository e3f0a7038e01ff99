"""What happened to a cluster as its clients saw it: plain values, recorded while faults are at work, judged by `checker`.

Times are monotonic seconds of one machine. `UNKNOWN` is an outcome of its own: what was asked for may have happened or not,
and both are right. Nothing here does IO.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

#: How often a record is delivered to a share group at most: the most that Kafka's settings allow, so that records which were delivered in
#: answers that faults swallowed are not given up.
DELIVERIES_MAX = 10

#: A topic and a partition of it.
Place = tuple[str, int]


class Outcome(Enum):
    """What a client knows about something that it asked for."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Transaction:
    """One transaction: FAILED means that it is aborted for certain.

    `began` is when its end was first asked for: until then no reader may see its records.
    """

    name: str
    outcome: Outcome = Outcome.UNKNOWN
    began: float = float("inf")


@dataclass(slots=True)
class Send:
    """One record. Values are unique in a history; `number` is its place in the order of its producer.

    Attributes
    ----------
    offset : int or None
        Only when the outcome is OK: what was acknowledged. In a transaction, OK means that the broker took it.
    transaction : Transaction or None
        The transaction it is part of.
    source : (topic, partition, offset) or None
        The record that it is the one copy of.
    may_repeat : bool
        Its producer may send it again when it does not know whether it was written.
    """

    producer: str
    number: int
    place: Place
    value: str
    began: float
    ended: float = float("inf")
    outcome: Outcome = Outcome.UNKNOWN
    offset: int | None = None
    transaction: Transaction | None = None
    source: tuple[str, int, int] | None = None
    may_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Poll:
    """What one call gave: (offset, value) of one partition, in the order they came.

    Attributes
    ----------
    session : int
        Goes up whenever the consumer is given a new position (an assignment, a seek): within one it must miss nothing.
    """

    consumer: str
    session: int
    committed_only: bool
    place: Place
    records: tuple[tuple[int, str], ...]
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset of a group that was committed, or that was read (`fetched`). -1: there was none."""

    group: str
    place: Place
    offset: int
    began: float
    ended: float
    outcome: Outcome = Outcome.OK
    fetched: bool = False


@dataclass(slots=True)
class Taken:
    """A record that a member of a share group was given, to read committed records, and that it accepted.

    Attributes
    ----------
    count : int
        The number of the delivery, as the member got it.
    outcome : Outcome
        What the answer to the acknowledgement said; UNKNOWN without one.
    """

    group: str
    member: str
    place: Place
    offset: int
    value: str
    count: int
    ended: float
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(frozen=True, slots=True)
class End:
    """The end of a partition in an answer to one client: the high watermark, or with `committed_only` the last stable offset."""

    place: Place
    committed_only: bool
    offset: int
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class FinalRead:
    """All of a partition, read after everything was healed, up to the end that the leader gave."""

    place: Place
    committed_only: bool
    records: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """What one broker holds of a partition at the end: its segments one after another, and its high watermark."""

    broker: int
    place: Place
    batches: bytes
    high_watermark: int


@dataclass(frozen=True, slots=True)
class State:
    """Who held and led a partition at some moment, as the cluster's document said."""

    place: Place
    at: float
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0


@dataclass(slots=True)
class History:
    """All of it.

    Attributes
    ----------
    healed : list of float
        When the last of some faults was healed.
    copied : mapping
        Input place -> the group's offset at the end: everything before was copied once (places not in it were not copied).
    shared : mapping
        Share group -> the places of which it was given all that was acknowledged, as far as it could.
    """

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    group_offsets: list[GroupOffset] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    finals: list[FinalRead] = field(default_factory=list)
    replicas: list[Replica] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    healed: list[float] = field(default_factory=list)
    copied: Mapping[Place, int] = field(default_factory=dict)
    shared: Mapping[str, Collection[Place]] = field(default_factory=dict)
