"""Replicas that move, and the levels of a cluster's features."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """One move of replicas that is under way.

    Attributes
    ----------
    topic, partition : str, int
        What moves.
    replicas, adding, removing : tuple of int
        The brokers that have it or will, those of them that get it, and those that give it away.
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
        What the whole cluster does; 0 when it is off.
    min, max : int
        What the broker that was asked understands.
    """

    feature: str
    level: int
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class UpdateFeatureResult:
    """What became of a level to raise.

    Attributes
    ----------
    feature : str
        Its name.
    error, message : str or None
        Kafka's name of why it was refused, and the sentence.
    """

    feature: str
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerResult:
    """What became of a broker to forget.

    Attributes
    ----------
    broker : int
        Its number.
    error, message : str or None
        Kafka's name of why it was refused, and the sentence.
    """

    broker: int
    error: str | None
    message: str | None
