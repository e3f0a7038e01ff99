"""One run: a cluster, clients, and faults drawn from a seed; then everything heals and must agree.

A run is a violation (`oracle.Violation`), or figures of what happened. The same seed and the same planted mistakes are the same run.
"""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random

from pylog_spark.cluster.assignment import assign
from pylog_spark.cluster.model import BrokerInfo, Topic
from pylog_spark.cluster.topics import NewTopic, Rules, create
from tests.simulation.broker import Broker
from tests.simulation.faults import Faults
from tests.simulation.oracle import Oracle, Violation
from tests.simulation.store import Store
from tests.simulation.world import World

FAULTS_LAST = 3_000.0
HEALING_LASTS = 6_000.0


@dataclass(frozen=True)
class Cluster:
    """What a seed makes of a cluster.

    Attributes
    ----------
    power : bool
        Machines lose power and what was not synced: as many at a time as min.insync.replicas bears, any number with `flushed`.
    boot_known : bool
        A broker knows after a kill that its machine was not switched off, so that it keeps its place.
    late : float
        The part of the messages that take long, some longer than a session.
    absent : tuple of int
        Who was dead when the topic was made: it has replicas that never were in sync.
    only : tuple of str
        The faults to draw from; none named: all.
    """

    brokers: int
    partitions: int
    factor: int
    min_isr: int
    flushed: bool
    unclean: bool
    power: bool
    boot_known: bool
    reconfigured: bool
    late: float = 0.01
    absent: tuple[int, ...] = ()
    only: tuple[str, ...] = ()

    @staticmethod
    def drawn(seed: int) -> "Cluster":
        random = Random(seed * 7919 + 1)
        factor = random.choice([2, 3, 3, 3, 4])
        min_isr = random.choice([1, 2, 2, 2, min(3, factor)])
        flushed = random.random() < 0.2
        power = flushed or (min_isr > 1 and random.random() < 0.7)
        return Cluster(
            brokers=factor + random.choice([0, 0, 1, 2]),
            partitions=random.choice([1, 1, 2]),
            factor=factor,
            min_isr=min_isr,
            flushed=flushed,
            unclean=random.random() < 0.05,
            power=power,
            boot_known=random.random() < 0.5,
            reconfigured=(flushed or not power) and random.random() < 0.3,
            late=random.choice([0.003, 0.01, 0.05]),
            absent=random.choice([(), (), (), (random.randrange(factor) + 1,)]),
        )


class Simulation:
    """A cluster in its world."""

    def __init__(self, seed: int, planted: frozenset[str] = frozenset(), shape: Cluster | None = None) -> None:
        self.shape = shape or Cluster.drawn(seed)
        self.world = World(seed, self.shape.late)
        self.brokers: dict[int, Broker] = {}
        bound = 1 if self.shape.reconfigured else self.shape.min_isr
        self.oracle = Oracle(self.brokers, lambda: self.store.topic, not self.shape.unclean, self.shape.flushed, bound)
        self.store = Store(self.world, self.oracle, self._topic())
        for number in range(1, self.shape.brokers + 1):
            broker = Broker(self.world, number, self.store, self.oracle, self.shape.flushed, planted)
            self.brokers[number] = broker
        self.faults = Faults(self)
        self._values = 0

    def _topic(self) -> Topic:
        shape = self.shape
        infos = [BrokerInfo(number) for number in range(1, shape.brokers + 1)]
        absent = frozenset(shape.absent)
        start = self.world.random.randrange(100)
        placed = assign(infos, shape.partitions, shape.factor, start=start, absent=absent)
        assert isinstance(placed, tuple)
        rules = Rules(1, shape.partitions, shape.factor, True, lambda _name, text: text, infos, absent)
        wanted = NewTopic("t", assignments=list(enumerate(placed)))
        (made,) = create({}, [wanted], rules, lambda: "AAAAAAAAAAAAAAAAAAAAAA")
        assert isinstance(made, Topic)
        configs = {"min.insync.replicas": str(shape.min_isr), "unclean": str(shape.unclean).lower()}
        return replace(made, configs=configs)

    def run(self) -> Counter[str]:
        """Everything from start to end; how often what happened. Raises `Violation`."""
        for broker in self.brokers.values():
            broker.start()
        self.world.after(300, self.faults.begin)
        self.world.after(50, self._produce)
        self.world.run(FAULTS_LAST)
        self.faults.heal()
        end = self.world.now + HEALING_LASTS
        while self.world.now < end and self.oracle.healed() is not None:
            self.world.run(self.world.now + 100)
        self.oracle.finished()
        return self._figures()

    def _produce(self) -> None:
        """Clients send to the leader that some broker knows; often that is an old one."""
        random = self.world.random
        for _ in range(random.choice([1, 1, 2])):
            target = random.choice(list(self.brokers.values()))
            partition = random.randrange(self.shape.partitions)
            stored = self.store.topic.partitions[partition].leader
            if stored in self.brokers and random.random() < 0.8:
                target = self.brokers[stored]
            self._values += 1
            if target.life is not None and not target.paused:
                target.replicas.produce(partition, f"v{self._values}", random.random() < 0.8)
        if self.world.now < FAULTS_LAST:
            self.world.after(random.uniform(2, 12), self._produce)

    def _figures(self) -> Counter[str]:
        figures = Counter(self.world.counts)
        for partition in self.store.topic.partitions:
            figures["leader epochs"] += partition.leader_epoch
            figures["partition epochs"] += partition.partition_epoch
        return figures


def simulate(seed: int, planted: frozenset[str] = frozenset(), shape: Cluster | None = None) -> Counter[str]:
    """Run a seed. Raises `Violation` with the seed in its sentence."""
    simulation = Simulation(seed, planted, shape)
    try:
        return simulation.run()
    except Violation as violation:
        raise Violation(f"seed {seed}, {simulation.shape}, at {simulation.world.now:.1f}: {violation}") from violation
