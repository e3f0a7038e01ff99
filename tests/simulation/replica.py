"""A model of the replicas of one broker: led ones append and answer, the others fetch, truncate and append."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.cluster.isr import IsrProposal
from pylog_spark.cluster.model import Partition, Topic
from tests.simulation.leading import Leading, rules
from tests.simulation.log import Log
from tests.simulation.world import Task

if TYPE_CHECKING:
    from tests.simulation.broker import Broker

BATCH = 4
ANSWER_TIMEOUT = 40.0


@dataclass(frozen=True)
class Fetch:
    """What a follower asks for, and as whom."""

    partition: int
    replica: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int


@dataclass(frozen=True)
class Fetched:
    """What it gets: records from `offset` on, or where its log parts from the leader's; neither: refused."""

    offset: int = 0
    records: tuple[tuple[int, str], ...] | None = None
    high_watermark: int = 0
    diverging: tuple[int, int] | None = None


class Replicas:
    """All replicas of one process of one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._world = broker.world
        self.led: dict[int, Leading] = {}
        self._state: dict[int, Partition] = {}

    # What is to be led and followed.

    def apply(self, topic: Topic) -> None:
        broker = self._broker
        for partition in topic.partitions:
            known = self._state.get(partition.partition)
            self._state[partition.partition] = partition
            if broker.id not in partition.replicas:
                self.led.pop(partition.partition, None)
                broker.disk.pop(partition.partition, None)
                continue
            broker.disk.setdefault(partition.partition, Log())
            led = self.led.get(partition.partition)
            if partition.leader != broker.id:
                self.led.pop(partition.partition, None)
                if known is None or known.leader_epoch != partition.leader_epoch or broker.id not in known.replicas:
                    broker.spawn(self._follow(partition.partition, partition.leader_epoch))
            elif led is not None and led.partition.leader_epoch == partition.leader_epoch:
                led.update(partition, rules(topic))
                self._advance(led)
            else:
                self._lead(partition, rules(topic))

    def _lead(self, partition: Partition, rules: object) -> None:
        broker = self._broker
        broker.oracle.leads(broker, partition.partition, partition.leader_epoch)
        self._world.counts["leaders"] += 1
        led = Leading(
            partition,
            broker.id,
            broker.disk[partition.partition],
            rules,
            broker.flushed,
            broker.planted,
            self._world.now,  # type: ignore[arg-type]
        )
        self.led[partition.partition] = led
        if broker.flushed:
            led.log.synced = led.log.end
        self._advance(led)

    def step_down(self) -> None:
        self.led.clear()

    def refused(self, proposal: IsrProposal) -> None:
        led = self.led.get(proposal.partition)
        if led is not None and led.pending is proposal:
            led.pending = None
            self._advance(led)

    # Leading.

    def _serving(self, partition: int) -> Leading | None:
        led = self.led.get(partition)
        return led if led is not None and self._broker.may_lead() else None

    def produce(self, partition: int, value: str, everywhere: bool) -> None:
        """A record of a client; `everywhere`: acks=all."""
        led = self._serving(partition)
        if led is None or (everywhere and len(led.partition.isr) < led.min_isr):
            self._world.counts["refused"] += 1
            return
        epoch, offset, log = led.partition.leader_epoch, led.log.end, led.log
        self._broker.oracle.acts(self._broker, partition, epoch)
        self._broker.oracle.appended(partition, epoch, offset, value)
        log.records.append((epoch, value))
        if everywhere:
            led.waiting.append((offset, value))
        if self._broker.flushed:
            self._broker.spawn(self._flush(led))
        self._advance(led)

    def _flush(self, led: Leading) -> Task:
        end = led.log.end
        yield self._broker.sleep(self._world.random.uniform(1, 6))
        led.log.synced = max(led.log.synced, min(end, led.log.end))
        if self.led.get(led.partition.partition) is led:
            self._advance(led)

    def _advance(self, led: Leading) -> None:
        if not self._broker.may_lead():
            return
        target, log = led.next_high_watermark(), led.log
        if target > log.high_watermark:
            old, log.high_watermark = log.high_watermark, target
            self._broker.oracle.acts(self._broker, led.partition.partition, led.partition.leader_epoch)
            self._broker.oracle.exposed(self._broker, led.partition.partition, old, target)
        while led.waiting and led.waiting[0][0] < log.high_watermark:
            offset, value = led.waiting.pop(0)
            if len(led.partition.isr) >= led.min_isr:
                self._world.counts["acknowledged"] += 1
                self._broker.oracle.answered(led.partition.partition, offset, value)

    def fetched(self, fetch: Fetch) -> Fetched:
        """Answer a follower."""
        broker, led = self._broker, self._serving(fetch.partition)
        if (
            led is None
            or fetch.replica not in led.partition.replicas
            or broker.live.get(fetch.replica) != fetch.broker_epoch
        ):
            return Fetched()
        if fetch.leader_epoch != led.partition.leader_epoch:
            self._world.counts["fetches fenced"] += 1
            return Fetched()
        broker.oracle.acts(broker, fetch.partition, led.partition.leader_epoch)
        log = led.log
        if "no truncation" not in broker.planted and fetch.offset > 0:
            epoch, end = log.end_of(fetch.last_epoch)
            if epoch != fetch.last_epoch or end < fetch.offset:
                return Fetched(diverging=(epoch, end))
        proposal = led.fetched(fetch.replica, fetch.offset, self._world.now)
        self._propose(proposal)
        self._advance(led)
        records = tuple(log.records[fetch.offset : fetch.offset + BATCH])
        return Fetched(fetch.offset, records, log.high_watermark)

    def _propose(self, proposal: IsrProposal | None) -> None:
        if proposal is not None:
            self._world.counts["ISR proposals"] += 1
            self._broker.spawn(self._broker.alter(proposal))

    def watch_lag(self) -> Task:
        while True:
            yield self._broker.sleep(30)
            for led in list(self.led.values()):
                if self._broker.may_lead():
                    self._propose(led.lagging(self._world.now))
            for log in self._broker.disk.values():
                if not self._broker.flushed and self._world.chance(0.2):
                    log.synced = self._world.random.randint(log.synced, log.end)
                log.checkpoint = self._world.random.randint(log.checkpoint, max(log.checkpoint, log.high_watermark))

    # Following.

    def _follow(self, partition: int, epoch: int) -> Task:
        broker = self._broker
        while True:
            state = self._state[partition]
            if state.leader_epoch != epoch or broker.id not in state.replicas or state.leader in (-1, broker.id):
                return
            log = broker.disk[partition]
            if broker.flushed and "a follower's page cache counts as flushed" not in broker.planted:
                log.synced = log.end
            fetch = Fetch(partition, broker.id, broker.epoch, epoch, log.end, log.latest_epoch)
            answer = yield from self._ask(state.leader, fetch)
            now = self._state[partition]
            if answer is None or now.leader_epoch != epoch or broker.disk.get(partition) is not log:
                yield broker.sleep(self._world.random.uniform(1, 10))
                continue
            caught_up = self._take(partition, log, answer)
            yield broker.sleep(self._world.random.uniform(5, 15) if caught_up else 1)

    def _ask(self, leader: int, fetch: Fetch) -> Task:
        """The answer of the leader, None when there is none in time."""
        target = self._broker.oracle.broker(leader)

        def send(resume: object) -> None:
            done = []

            def once(answer: Fetched | None) -> None:
                if not done:
                    done.append(True)
                    resume(answer)  # type: ignore[operator]

            def deliver() -> None:
                answer = target.replicas.fetched(fetch)
                target.send(self._broker, lambda: once(answer))

            self._broker.send(target, deliver)
            self._world.after(ANSWER_TIMEOUT, lambda: once(None))

        return (yield send)

    def _take(self, partition: int, log: Log, answer: Fetched) -> bool:
        """Apply an answer; whether nothing is left to fetch."""
        broker = self._broker
        if answer.diverging is not None:
            epoch, end = answer.diverging
            end = min(end, log.end_of(epoch)[1], log.end)
            broker.oracle.truncated(broker, partition, end)
            self._world.counts["truncations"] += 1
            self._world.counts["records truncated"] += log.end - end
            log.truncate(end)
            return False
        if answer.records is None or answer.offset != log.end:
            return True
        log.records.extend(answer.records)
        target = min(answer.high_watermark, log.end)
        if target > log.high_watermark:
            old, log.high_watermark = log.high_watermark, target
            broker.oracle.exposed(broker, partition, old, target)
        return not answer.records
