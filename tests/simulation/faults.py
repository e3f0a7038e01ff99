"""What goes wrong in a simulation, and what operators do meanwhile: drawn from the seed until `heal`."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pylog_spark.cluster import election, reassignment
from pylog_spark.cluster.model import Topic
from tests.simulation.broker import Broker
from tests.simulation.leading import rules
from tests.simulation.store import SESSION, STORE
from tests.simulation.world import Task

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

STOP_TIMEOUT = 600.0

# How often what is drawn; the names are those of the methods.
WEIGHTS = {
    "kill": 3,
    "power": 3,
    "kill_all": 0.4,
    "pause": 3,
    "isolate_from_store": 2,
    "isolate": 3,
    "cut_pair": 2,
    "stop": 1.5,
    "move": 1.5,
    "cancel": 0.5,
    "prefer": 1,
    "reconfigure": 1,
}


class Faults:
    """See the module."""

    def __init__(self, simulation: "Simulation") -> None:
        self._all = simulation
        self._world = simulation.world
        self._over = False
        self._cuts = 0

    def begin(self) -> None:
        if self._over:
            return
        shape, random = self._all.shape, self._world.random
        weights = {name: weight for name, weight in WEIGHTS.items() if name in (shape.only or WEIGHTS)}
        if not shape.power:
            weights["power"] = 0
        if not shape.reconfigured:
            weights["reconfigure"] = 0
        (name,) = random.choices([*weights], [*weights.values()])
        # The leader and the controller are where it hurts.
        target = random.choice(list(self._all.brokers.values()))
        leader = self._all.brokers.get(self._all.store.topic.partitions[0].leader)
        if leader is not None and random.random() < 0.4:
            target = leader
        acts: Callable[[Broker], None] = getattr(self, f"_{name}")
        acts(target)
        self._world.after(random.expovariate(1 / 110), self.begin)

    def heal(self) -> None:
        """No more faults; everybody comes back."""
        self._over = True
        self._world.calm = True
        self._world.cut.clear()
        for broker in self._all.brokers.values():
            if broker.paused:
                broker.resume()
            if broker.life is None:
                broker.start()

    # Processes.

    def _damage(self, broker: Broker, power: bool) -> bool:
        """Whether the process of `broker` may end uncleanly now, noted if so.

        Without power loss any number may. With it, no more at a time than min.insync.replicas - 1: the rest has every record.
        """
        damaged = self._all.oracle.damaged
        shape = self._all.shape
        held = [partition for partition in self._all.store.topic.partitions if broker.id in partition.replicas]
        if not shape.flushed:
            bound = shape.min_isr - 1
            if shape.power and (power or not shape.boot_known):
                if any(len(damaged[partition.partition] | {broker.id}) > bound for partition in held):
                    return False
                for partition in held:
                    damaged[partition.partition].add(broker.id)
        return True

    def _kill(self, broker: Broker) -> None:
        if broker.life is not None and self._damage(broker, power=False):
            self._world.counts["kills"] += 1
            broker.kill(self._all.shape.boot_known)
            self._restart(broker)

    def _kill_all(self, _: Broker) -> None:
        for broker in self._all.brokers.values():
            self._kill(broker)

    def _power(self, broker: Broker) -> None:
        if broker.life is not None and self._damage(broker, power=True):
            self._world.counts["power losses"] += 1
            broker.lose_power()
            self._restart(broker)

    def _restart(self, broker: Broker) -> None:
        def start() -> None:
            if broker.life is None:
                broker.start()

        self._world.after(self._world.random.choice([5, 50, 250, 600]), start)

    def _pause(self, broker: Broker) -> None:
        if broker.life is None or broker.paused:
            return
        self._world.counts["pauses"] += 1
        life = broker.life
        broker.pause()
        lasts = self._world.random.choice([30, SESSION * 0.7, SESSION * 1.2, SESSION * 2.5])
        self._world.after(lasts, lambda: broker.resume() if broker.life is life else None)

    def _stop(self, broker: Broker) -> None:
        if broker.life is None or broker.paused or broker.leaving or not broker.registered:
            return
        life = broker.life
        broker.stop()

        def follow_up() -> None:
            if broker.life is life and not self._over:
                self._kill(broker)
            if broker.life is life:
                self._world.after(STOP_TIMEOUT, follow_up)
            elif broker.life is None:
                broker.start()

        self._world.after(STOP_TIMEOUT, follow_up)

    # The network.

    def _cut(self, links: set[tuple[int, int]]) -> None:
        self._world.counts["cuts"] += 1
        self._world.cut |= links
        self._world.after(self._world.random.choice([40, 150, 500]), lambda: self._world.cut.difference_update(links))

    def _isolate_from_store(self, broker: Broker) -> None:
        self._cut({(broker.id, STORE)})

    def _isolate(self, broker: Broker) -> None:
        others = {other for other in self._all.brokers if other != broker.id}
        self._cut({(broker.id, other) for other in others} | {(other, broker.id) for other in others})

    def _cut_pair(self, broker: Broker) -> None:
        other = self._world.random.choice([other for other in self._all.brokers if other != broker.id])
        links = {(broker.id, other), (other, broker.id)}
        if self._world.chance(0.5):
            links = {(broker.id, other)}
        self._cut(links)

    # Operators.

    def _decide(self, broker: Broker, what: str, decide: Callable[[Topic], Topic]) -> None:
        def task() -> Task:
            if broker.registered and (yield from broker.change(decide, tries=3)):
                self._world.counts[what] += 1

        if broker.life is not None and not broker.paused:
            broker.spawn(task())

    def _move(self, broker: Broker) -> None:
        shape, random = self._all.shape, self._world.random
        size = random.choice(
            [size for size in (shape.factor - 1, shape.factor, shape.brokers) if size >= shape.min_isr]
        )
        target = random.sample(sorted(self._all.brokers), size)

        def decide(topic: Topic) -> Topic:
            after, _ = reassignment.start(
                topic, {random.randrange(shape.partitions): target}, broker.seen(), rules(topic)
            )
            return broker.decisions.reconcile(after, broker.seen(), rules(topic))

        self._decide(broker, "moves", decide)

    def _cancel(self, broker: Broker) -> None:
        def decide(topic: Topic) -> Topic:
            bound = None if "a cancelled move leaves too few" in broker.planted else rules(topic)
            after, _ = reassignment.start(topic, {0: None}, broker.seen(), bound)
            return broker.decisions.reconcile(after, broker.seen(), rules(topic))

        self._decide(broker, "cancels", decide)

    def _prefer(self, broker: Broker) -> None:
        def decide(topic: Topic) -> Topic:
            return election.elect_preferred(topic, range(self._all.shape.partitions), broker.seen(), rules(topic))[0]

        self._decide(broker, "preferred elections", decide)

    def _reconfigure(self, broker: Broker) -> None:
        wanted = self._world.random.choice([1, 2])

        def decide(topic: Topic) -> Topic:
            after = replace(topic, configs={**topic.configs, "min.insync.replicas": str(wanted)})
            if "another min.insync.replicas without reconciling" in broker.planted:
                return after
            return election.reconfigured(after, rules(after))

        self._decide(broker, "reconfigurations", decide)
