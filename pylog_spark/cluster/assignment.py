"""Where the replicas of new partitions go: a pure, deterministic decision. No IO, no clock, no randomness.

The rules, the most important first: the replicas of a partition are on different brokers, and its leader on one that is not absent; they
are spread evenly over the racks; they are on brokers that are not absent; all brokers lead equally many partitions; all have equally many
replicas; the followers of one broker's partitions are spread over all other brokers, so that these share its load when it dies. Brokers
without a rack count as one rack.
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
    """Give the replicas of new partitions, the preferred leader of each first.

    Parameters
    ----------
    brokers : sequence of BrokerInfo
        The brokers that may have replicas.
    partitions : int
        How many partitions to place.
    factor : int
        How many replicas each partition gets.
    start : int
        Where to begin among the brokers: topics with few partitions and different starts use different brokers.
    first_partition : int
        How many partitions the topic has already; the placement continues after those.
    absent : collection of int
        Brokers that are dead or being stopped, and so cannot lead.
    """
    refused = _refused(brokers, factor, absent)
    if refused is not None:
        return refused
    ring = _ring(brokers)
    leaders = [broker for broker in ring if broker not in absent]
    begin = start + first_partition
    racks = {broker.id: broker.rack for broker in brokers}
    led: Counter[int] = Counter()
    # Absent brokers count as the fullest ones.
    held: Counter[int] = Counter(dict.fromkeys(absent, partitions + 1))
    placed = []
    for index in range(partitions):
        turn = begin + index
        order = {broker: (place - turn) % len(ring) for place, broker in enumerate(ring)}
        leader = min(leaders, key=lambda broker: (led[broker], held[broker], order[broker]))
        # In each round over all brokers a leader gets other followers.
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
    """The brokers in a circle in which neighbours are in different racks."""
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
