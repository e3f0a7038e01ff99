"""Where the replicas of existing partitions should be after brokers were added or removed. Pure; no IO, no clock, deterministic.

Called by the client that asks for a reassignment. Kafka's request AlterPartitionReassignments (KIP-455) names the replicas that
each partition is to have, and no version of it leaves the choice to the brokers; Kafka's own tool makes the plan in the client, too
(`kafka-reassign-partitions --generate`). So `pylog cluster reassign` reads the present replicas and the live brokers, calls `plan` and
sends the plan unchanged. The controller checks each partition of the request (`reassignment`). If a broker or a partition was added or
removed meanwhile, it refuses the partitions concerned and moves the others. For new partitions the brokers choose: `assignment`.

As few replicas as possible move: those on remaining brokers stay, unless one broker would have at least two replicas more than
another. Then leadership is balanced by the order of the replicas, which moves no records.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo
from pylog_spark.topic_partition import TopicPartition

Placement = dict[TopicPartition, tuple[int, ...]]


def plan(
    replicas: Mapping[TopicPartition, Sequence[int]],
    live: Sequence[BrokerInfo],
    *,
    broker_ids: Collection[int] | None = None,
    factor: int | None = None,
) -> Placement | Refusal:
    """Decide the moves of some partitions; the preferred leader of each comes first.

    Parameters
    ----------
    replicas : mapping of TopicPartition to sequence of int
        The partitions that may be moved, with their present replicas.
    live : sequence of BrokerInfo
        All live brokers.
    broker_ids : collection of int, optional
        The brokers that may have replicas; all live ones when None.
    factor : int, optional
        How many replicas each partition gets; as many as it has when None.

    Returns
    -------
    dict of TopicPartition to tuple of int, or Refusal
        The new replicas of every partition whose replicas change; or why there is no such plan.
    """
    unknown = set(broker_ids or ()) - {broker.id for broker in live}
    if unknown:
        ids = ",".join(str(broker.id) for broker in live)
        sentence = f"Broker {min(unknown)} is not alive; the live brokers are {ids}."
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
    chosen = [broker for broker in live if broker_ids is None or broker.id in broker_ids]
    placed = spread(replicas, chosen, factor)
    return placed if isinstance(placed, Refusal) else changes(replicas, placed)


def changes(replicas: Mapping[TopicPartition, Sequence[int]], wanted: Placement) -> Placement:
    """Give those of `wanted` that differ from the present replicas."""
    return {partition: to for partition, to in wanted.items() if tuple(replicas.get(partition, ())) != to}


def spread(
    present: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[BrokerInfo], factor: int | None = None
) -> Placement | Refusal:
    """Give new replicas for each partition, the preferred leader first.

    Parameters
    ----------
    present : mapping of TopicPartition to sequence of int
        The present replicas.
    brokers : sequence of BrokerInfo
        The brokers that may have replicas.
    factor : int, optional
        How many replicas each partition gets; as many as it has when None.
    """
    racks = {broker.id: broker.rack for broker in brokers}
    for partition, replicas in present.items():
        wanted = len(replicas) if factor is None else factor
        if not 1 <= wanted <= len(racks):
            sentence = f"{partition[0]}-{partition[1]} would have {wanted} replicas on {len(racks)} brokers: name more brokers."
            return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)
    held: Counter[int] = Counter(dict.fromkeys(sorted(racks), 0))
    placed: dict[TopicPartition, list[int]] = {}
    for partition, replicas in sorted(present.items()):
        wanted = len(replicas) if factor is None else factor
        placed[partition] = [broker for broker in replicas if broker in racks][:wanted]
        held.update(placed[partition])
    for partition, replicas in sorted(present.items()):
        wanted = len(replicas) if factor is None else factor
        while len(placed[partition]) < wanted:
            broker = _least(placed[partition], held, racks)
            placed[partition].append(broker)
            held[broker] += 1
    _even_out(placed, held, racks)
    return _led_evenly(placed)


def _least(taken: Sequence[int], held: Counter[int], racks: Mapping[int, str | None]) -> int:
    """Choose another broker for a partition that is on `taken`: in another rack, if there is one, and with the fewest replicas."""
    used = {racks[broker] for broker in taken if racks[broker] is not None}
    return min(
        (broker for broker in racks if broker not in taken),
        key=lambda broker: (racks[broker] in used, held[broker], broker),
    )


def _even_out(placed: Mapping[TopicPartition, list[int]], held: Counter[int], racks: Mapping[int, str | None]) -> None:
    """Move replicas from the broker with the most to that with the fewest, while they differ by more than one and a replica can move."""
    stuck: set[tuple[int, int]] = set()
    while True:
        pairs = [
            (held[low] - held[high], low, high)
            for low in held
            for high in held
            if held[high] - held[low] > 1 and (low, high) not in stuck
        ]
        if not pairs:
            return
        _, low, high = min(pairs)
        movable = [partition for partition in sorted(placed) if _can_move(placed[partition], high, low, racks)]
        if not movable:
            stuck.add((low, high))
            continue
        replicas = placed[movable[-1]]
        replicas[replicas.index(high)] = low
        held[high] -= 1
        held[low] += 1


def _can_move(replicas: Sequence[int], high: int, low: int, racks: Mapping[int, str | None]) -> bool:
    """Whether `low` may take the place of `high`: it has none of the partition, and no rack gets a second one."""
    if high not in replicas or low in replicas:
        return False
    others = {racks[broker] for broker in replicas if broker != high}
    return racks[low] is None or racks[low] not in others or racks[high] in others


def _led_evenly(placed: Mapping[TopicPartition, list[int]]) -> Placement:
    led: Counter[int] = Counter()
    result = {}
    for partition, replicas in placed.items():
        leader = min(replicas, key=lambda broker: (led[broker], replicas.index(broker)))
        led[leader] += 1
        result[partition] = (leader, *(replica for replica in replicas if replica != leader))
    return result
