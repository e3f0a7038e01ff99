"""Topics, their partitions and offsets, the brokers, and the results of changes to them."""

from dataclasses import dataclass
from typing import NamedTuple

from pylog_spark.results.display import Display
from pylog_spark.results.markup import Shown, listed


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition of a topic.

    Attributes
    ----------
    partition : int
        Its number.
    leader : int
        The broker that leads it; -1 while there is no leader.
    leader_epoch : int
        How often the leader changed; -1 when the brokers do not say.
    replicas, isr : tuple of int
        The brokers that hold it, the preferred leader first; and those of them that are in sync.
    error : str or None
        Kafka's name of what is wrong with it, such as ``LEADER_NOT_AVAILABLE``.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: str | None


class PartitionOffset(NamedTuple):
    """An offset of a partition, found by time or by its place in the log. Unpacks as a tuple.

    Attributes
    ----------
    topic : str
        The topic.
    partition : int
        The number of the partition.
    offset : int
        The offset; -1 when no record has the wanted timestamp or a later one.
    timestamp_ms : int
        The timestamp of the record at that offset, in milliseconds since 1970; -1 for the earliest and the latest offset.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ListedTopic(NamedTuple):
    """One topic, and no more of its partitions than their numbers.

    Attributes
    ----------
    name, topic_id, is_internal, error
        As of `TopicDescription`.
    partitions : list of int
        The numbers of its partitions, in order; none where there is an error.
    """

    name: str
    topic_id: str
    is_internal: bool
    error: str | None
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class TopicDescription(Display):
    """One topic.

    Attributes
    ----------
    name : str
        Its name.
    topic_id : str
        Its id, a new one when it is deleted and created again; empty where brokers have none, or the topic does not exist.
    is_internal : bool
        Whether it belongs to the brokers.
    error : str or None
        Kafka's name of the error, such as ``UNKNOWN_TOPIC_OR_PARTITION``; None without one.
    partitions : tuple of PartitionDescription
        By number; none where there is an error.
    """

    name: str
    topic_id: str
    is_internal: bool
    error: str | None
    partitions: tuple[PartitionDescription, ...]

    def _shown(self) -> Shown:
        rows = [
            (
                each.partition,
                each.leader if each.leader >= 0 else None,
                listed(each.replicas),
                listed(each.isr),
                each.error,
            )
            for each in self.partitions
        ]
        about = self.error or f"{len(self.partitions)} partitions"
        return Shown(f"Topic {self.name}: {about}", ("partition", "leader", "replicas", "in sync", "error"), rows)


@dataclass(frozen=True, slots=True)
class Node:
    """One broker, or its last address.

    Attributes
    ----------
    node_id : int
        Its number.
    host, port : str, int
        Where clients reach it.
    rack : str or None
        Its rack, if it has the setting.
    """

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ClusterDescription(Display):
    """A cluster.

    Attributes
    ----------
    cluster_id : str or None
        None where brokers have none.
    controller_id : int
        The broker that is the controller; -1 while there is none.
    brokers : tuple of Node
        The brokers that run.
    """

    cluster_id: str | None
    controller_id: int
    brokers: tuple[Node, ...]

    def _shown(self) -> Shown:
        rows = [
            (each.node_id, f"{each.host}:{each.port}", each.rack, each.node_id == self.controller_id)
            for each in self.brokers
        ]
        title = f"Cluster {self.cluster_id or '-'}: {len(rows)} brokers"
        return Shown(title, ("broker", "address", "rack", "controller"), rows)


@dataclass(frozen=True, slots=True)
class CreateTopicResult:
    """The result of creating a topic.

    Attributes
    ----------
    name : str
        The topic's name.
    topic_id : str
        Its id; empty where brokers have none, or it was not made.
    num_partitions, replication_factor : int
        As they are; -1 when the brokers do not say.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    name: str
    topic_id: str
    num_partitions: int
    replication_factor: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class DeleteTopicResult:
    """The result of deleting a topic.

    Attributes
    ----------
    name : str
        The topic's name.
    topic_id : str
        Its id; empty where brokers have none, or it was not there.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    name: str
    topic_id: str
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class NamedResult:
    """The result of a change to a topic, a group or a broker.

    Attributes
    ----------
    name : str
        What was to be changed.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    name: str
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The result of a change to a partition.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    topic: str
    partition: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class DeletedRecords:
    """The result of deleting the first records of a partition.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    low_watermark : int
        The first offset that is left; -1 with an error.
    error : str or None
        Kafka's name of the error; None without one.
    """

    topic: str
    partition: int
    low_watermark: int
    error: str | None
