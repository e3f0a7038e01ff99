"""The cluster as plain, immutable values, with Kafka's names. No IO, no clock, no randomness except in `new_topic_id`."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

# Ids that Kafka never hands out: "no id" and the two of its metadata topic.
_RESERVED_IDS = frozenset({uuid.UUID(int=0), uuid.UUID(int=1)})


class Endpoint(NamedTuple):
    """Where a listener is reached."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A live broker as it registered.

    Attributes
    ----------
    host, port : str, int
        Where other brokers reach it.
    epoch : int
        The epoch of its registration; a broker that registers again has a larger one.
    level_min, level_max : int
        The cluster levels that it understands: of stored documents and of requests between brokers.
    min_isr : int
        Its default of min.insync.replicas; all brokers of a cluster have the same.
    listeners : tuple of (str, Endpoint)
        Its listeners by name, in the order of the names; empty when its only one is PLAINTEXT at `host` and `port`.
    """

    id: int
    host: str = ""
    port: int = 0
    rack: str | None = None
    epoch: int = 0
    level_min: int = 1
    level_max: int = 1
    min_isr: int = 1
    listeners: tuple[tuple[str, Endpoint], ...] = ()

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """Where each of its listeners is reached, by name."""
        return dict(self.listeners) or {"PLAINTEXT": Endpoint(self.host, self.port)}

    def at(self, endpoints: Mapping[str, Endpoint], inter_broker: str) -> "BrokerInfo":
        """Give this broker with these listeners, of which other brokers use `inter_broker`."""
        host, port = endpoints[inter_broker]
        only_plaintext = endpoints.keys() == {"PLAINTEXT"}
        return replace(self, host=host, port=port, listeners=() if only_plaintext else tuple(sorted(endpoints.items())))


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a topic: its replicas and its leader (-1: none).

    Attributes
    ----------
    replicas : tuple of int
        Broker ids, the preferred leader first; while replicas move, the old and the new ones.
    isr : tuple of int
        The in-sync replicas: they have every committed record.
    partition_epoch : int
        Grows by one with each change of the partition.
    adding, removing : tuple of int
        While replicas move, those of `replicas` that are added and removed.
    elr : tuple of int
        The eligible leader replicas: outside the ISR, but with every committed record, because none was committed since they left
        (the ISR was smaller than min.insync.replicas, KIP-966).
    """

    partition: int
    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic.

    Attributes
    ----------
    topic_id : str
        Kafka's text form of a UUID: 22 characters of URL-safe base64. A recreated topic has a new one.
    configs : mapping of str to str
        The settings that were set for this topic, as text.
    deleting : bool
        True from the decision to delete it until its directories are gone; it is no longer served.
    """

    name: str
    topic_id: str
    configs: Mapping[str, str]
    partitions: tuple[Partition, ...]
    deleting: bool = field(default=False)

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


def new_topic_id() -> str:
    """A random topic id; like Kafka's, it never begins with '-' (a command line would read it as an option)."""
    while True:
        candidate = uuid.uuid4()
        text = topic_id_text(candidate)
        if candidate not in _RESERVED_IDS and not text.startswith("-"):
            return text


def topic_id_text(topic_id: uuid.UUID) -> str:
    """Kafka's text form of `topic_id`."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def topic_id_uuid(text: str) -> uuid.UUID:
    """The UUID behind Kafka's 22-character text or the usual hyphenated one. Raises ValueError for anything else."""
    if len(text) == 22:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    return uuid.UUID(text)
