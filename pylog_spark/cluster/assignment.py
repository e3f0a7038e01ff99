"""Where the replicas of new partitions go: a pure, deterministic decision. No IO, no clock, no randomness.

In this order of weight: the replicas of a partition are on different brokers, the leader on one that is not absent; over as many racks
as there are, evenly; on brokers that are not absent; each broker leads as many partitions as the others; each broker has as many
replicas as the others; the followers of one broker's partitions are spread over all the others, so that its death burdens all of them. A broker that names no rack stands in one with its like.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.model import BrokerInfo


def assign(
    brokers: Sequence[BrokerInfo],
    partitions: int,
    factor: int,
    *,
    start: int,
    first_partition: int = 0,
    absent: Collection[int] = (),
) -> tuple[tuple[int, ...], ...] | Refusal:
    """Replicas of `partitions` partitions on `factor` brokers each, the preferred leader first.

    `start` is where to begin: topics with different ones burden different brokers when they have few partitions.
    `first_partition` is how many partitions the topic has already; it goes on where those ended. `absent` brokers lead nothing.
    """
    refused = _refused(brokers, factor, absent)
    if refused is not None:
        return refused
    ring = _ring(brokers)
    leaders = [broker for broker in ring if broker not in absent]
    begin = start + first_partition
    racks = {broker.id: broker.rack for broker in brokers}
    led: Counter[int] = Counter()
    # Whoever is there has less.
    held: Counter[int] = Counter(dict.fromkeys(absent, partitions + 1))
    placed = []
    for index in range(partitions):
        turn = begin + index
        order = {broker: (place - turn) % len(ring) for place, broker in enumerate(ring)}
        leader = min(leaders, key=lambda broker: (led[broker], held[broker], order[broker]))
        # After each round over all brokers the followers of the same leader are others.
        order = {broker: (place - turn - 1 - turn // len(ring)) % len(ring) for place, broker in enumerate(ring)}
        replicas = _with_followers(leader, ring, factor, racks, held, order)
        led[leader] += 1
        held.update(replicas)
        placed.append(replicas)
    return tuple(placed)


def _refused(brokers: Sequence[BrokerInfo], factor: int, absent: Collection[int]) -> Refusal | None:
    if factor < 1:
        sentence = "Replication factor must be at least 1, or -1 for the default."
    elif all(broker.id in absent for broker in brokers):
        sentence = f"Unable to replicate the partition {factor} time(s): no broker is ready to take it; try again."
    elif factor > len(brokers):
        sentence = (
            f"Unable to replicate the partition {factor} time(s): the replication factor of {factor} cannot be reached, "
            f"because only {len(brokers)} broker(s) are registered."
        )
    else:
        return None
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, sentence)


def _ring(brokers: Sequence[BrokerInfo]) -> list[int]:
    """The brokers in a circle in which neighbours stand in different racks."""
    racks: defaultdict[str, list[int]] = defaultdict(list)
    for broker in sorted(brokers, key=lambda broker: broker.id):
        racks[broker.rack or ""].append(broker.id)
    rows = [racks[name] for name in sorted(racks)]
    longest = max(map(len, rows))
    return [row[place] for place in range(longest) for row in rows if place < len(row)]


def _with_followers(
    leader: int,
    ring: Sequence[int],
    factor: int,
    racks: dict[int, str | None],
    held: Counter[int],
    order: dict[int, int],
) -> tuple[int, ...]:
    replicas = [leader]
    used = Counter([racks[leader]])
    while len(replicas) < factor:
        left = [broker for broker in ring if broker not in replicas]
        best = min(left, key=lambda broker: (used[racks[broker]], held[broker], order[broker]))
        replicas.append(best)
        used[racks[best]] += 1
    return tuple(replicas)
