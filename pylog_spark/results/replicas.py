"""Replicas that move, and the levels of a cluster's features."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """One move of replicas that is under way.

    Attributes
    ----------
    topic, partition : str, int
        The topic, and the number of the partition.
    replicas, adding, removing : tuple of int
        The brokers that hold the partition or will hold it, those of them that get it, and those that give it away.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """The level of one feature of a cluster.

    Attributes
    ----------
    feature : str
        Its name.
    level : int
        The level that the whole cluster uses; 0 when the feature is off.
    min, max : int
        The lowest and the highest level that the answering broker understands.
    """

    feature: str
    level: int
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class UpdateFeatureResult:
    """The result of raising the level of a feature.

    Attributes
    ----------
    feature : str
        Its name.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    feature: str
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerResult:
    """The result of unregistering a broker.

    Attributes
    ----------
    broker : int
        Its number.
    error, message : str or None
        Kafka's name of the error, and its sentence; None without an error.
    """

    broker: int
    error: str | None
    message: str | None
