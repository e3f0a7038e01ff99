"""A model of one broker: its session and lease, the controller it may be, and the replicas on its disk.

What it decides with is the project's own `election`, `isr` and `reassignment`; around them stands as little as possible.
"""

from collections.abc import Callable
from typing import Any

from pylog_spark.cluster.election import Liveness
from pylog_spark.cluster.errors import ErrorCode
from pylog_spark.cluster.isr import IsrProposal
from pylog_spark.cluster.model import Topic
from tests.simulation.leading import rules
from tests.simulation.log import Log
from tests.simulation.oracle import Oracle
from tests.simulation.planted import Decisions
from tests.simulation.replica import Replicas
from tests.simulation.store import SESSION, Outcome, Session, Store
from tests.simulation.world import Host, Task, World

PING = SESSION / 4
MARGIN = SESSION / 8
Decide = Callable[[Topic], Topic]


class Broker(Host):
    """See the module. Public methods are what the faults and the clients of a simulation do to it."""

    def __init__(
        self, world: World, number: int, store: Store, oracle: Oracle, flushed: bool, planted: frozenset[str]
    ) -> None:
        super().__init__(world, number)
        self.store = store
        self.oracle = oracle
        self.planted = planted
        self.flushed = flushed
        self.decisions = Decisions(planted)
        self.disk: dict[int, Log] = {}
        # Kept on the disk: its logs are what they were when it last stood by them in the documents.
        self.clean = True
        self.session: Session | None = None
        self.leaving = False
        self._forget()

    def _forget(self) -> None:
        """What is in the memory of a process."""
        self.topic: Topic | None = None
        self.revision = 0
        self.live: dict[int, int] = {}
        self.epoch = 0
        self.registered = False
        self.serving = False
        self.lease = 0.0
        self.controls: int | None = None
        self.news: set[str] = set()
        self.leaving = False
        self.replicas = Replicas(self)

    # A process begins and ends.

    def start(self) -> None:
        self.life = object()
        self._forget()
        for log in self.disk.values():
            log.restart()
        self.spawn(self._main())
        self.spawn(self.replicas.watch_lag())

    def kill(self, boot_known: bool) -> None:
        self.end()
        if not boot_known:
            self.clean = False
        elif "an unclean stop is forgotten at once" in self.planted:
            self.clean = True

    def lose_power(self) -> None:
        self.end()
        self.clean = False
        lost = [log.lose_power(self.world.random) for log in self.disk.values()]
        self.world.counts["tails lost"] += sum(lost)

    def stop(self) -> None:
        """Stop in good order: leadership first."""
        self.leaving = True
        self.spawn(self._stop())

    def _stop(self) -> Task:
        if self.registered:
            yield from self.change(
                lambda topic: self.decisions.leave(topic, self.id, self.seen(), rules(topic)), tries=5
            )
        self.registered = self.serving = False
        self.replicas.step_down()
        for log in self.disk.values():
            log.synced, log.checkpoint = log.end, log.high_watermark
        if self.session is not None and not self.session.expired:
            yield from self.ask(lambda: self.store.expire(self.session))
        self.world.counts["clean stops"] += 1
        self.end()

    def session_lives(self) -> bool:
        return self.session is not None and not self.session.expired

    def may_lead(self) -> bool:
        return self.registered and self.world.now < self.lease

    def seen(self) -> Liveness:
        """The brokers that live as far as this broker knows; the set of registered ones only grows here."""
        leaving = frozenset({self.id} if self.leaving else ())
        return Liveness(frozenset(self.live), leaving, known=frozenset(self.store.known))

    # The session.

    def ask(self, act: Callable[[], Any]) -> Task:
        """The outcome of `act` at the store; an answer extends the lease."""
        session, sent = self.session, self.world.now
        outcome = yield lambda resume: self.store.request(session, act, resume)
        if outcome is Outcome.EXPIRED and session is self.session:
            self._session_lost()
        elif outcome not in (Outcome.LOST, Outcome.EXPIRED) and session is self.session:
            margin = -SESSION if "the lease outlives the session" in self.planted else MARGIN
            self.lease = max(self.lease, sent + SESSION - margin)
        return outcome

    def _session_lost(self) -> None:
        if "the lease before the documents" in self.planted and self.registered:
            self.controls = None
            return
        self.registered = self.serving = False
        self.lease = 0.0
        self.controls = None
        self.replicas.step_down()

    def _main(self) -> Task:
        while True:
            self.session = self.store.connect(self, self._heard)
            self.lease = 0.0
            if (yield from self._join()):
                session = self.session
                self.spawn(self._follow_news(session))
                self.spawn(self._control(session))
                while not self.leaving:
                    yield self.sleep(PING)
                    outcome = yield from self.ask(lambda: None)
                    if outcome is Outcome.EXPIRED:
                        break
            if self.leaving:
                return
            yield self.sleep(self.world.random.uniform(1, 20))

    def _join(self) -> Task:
        """Step down where this broker still stands, then register; False when the session is over."""
        session = self.session
        if "the lease before the documents" in self.planted and self.registered:
            self.spawn(self._slow_documents())
        else:
            if not (yield from self._rejoin()):
                return False
        while (yield from self.ask(lambda: self.store.watch(session))) is Outcome.LOST:
            pass
        while True:
            epoch = yield from self.ask(lambda: self.store.register(session))
            if epoch is Outcome.EXPIRED:
                return False
            if isinstance(epoch, int):
                break
            yield self.sleep(20)
        self.epoch = epoch
        self.registered = True
        self.news = {"topics", "brokers"}
        return True

    def _rejoin(self) -> Task:
        while True:
            registered = yield from self.ask(self.store.live)
            if registered is Outcome.EXPIRED:
                return False
            if registered is Outcome.LOST or self.id in registered:
                yield self.sleep(15)
                continue
            alive = Liveness(frozenset(registered))
            done = yield from self.change(
                lambda topic, alive=alive: self.decisions.rejoin(topic, self.id, self.clean, alive, rules(topic)),
                tries=1,
            )
            if done:
                self.clean = True
                self.serving = True
                self.replicas.apply(self.topic)
                return True
            if self.session.expired:
                return False

    def _slow_documents(self) -> Task:
        yield self.sleep(60)
        self.news = {"topics", "brokers"}

    # What is stored.

    def _heard(self, kind: str) -> None:
        if self.life is not None:
            self.news.add(kind)

    def _follow_news(self, session: Session) -> Task:
        while session is self.session and not session.expired:
            if "topics" in self.news:
                self.news.discard("topics")
                if not (yield from self.read()):
                    self.news.add("topics")
            if "brokers" in self.news:
                self.news.discard("brokers")
                live = yield from self.ask(self.store.live)
                if isinstance(live, dict):
                    self.live = live
                else:
                    self.news.add("brokers")
            slow = not self.world.calm and self.world.chance(0.02)
            yield self.sleep(self.world.random.uniform(50, 200) if slow else self.world.random.uniform(0.5, 5))

    def read(self) -> Task:
        """Read and apply the topic; whether it could be read."""
        found = yield from self.ask(lambda: (self.store.topic, self.store.revision))
        if isinstance(found, str):
            return False
        self.apply(*found)
        return True

    def apply(self, topic: Topic, revision: int) -> None:
        if revision > self.revision:
            self.topic, self.revision = topic, revision
            if self.serving:
                self.replicas.apply(topic)

    def change(self, decide: Decide, tries: int, guard: int | None = None) -> Task:
        """Read, decide and store, again after a conflict; whether what was decided is stored."""
        for _ in range(tries):
            if not (yield from self.read()):
                return False
            before, revision = self.topic, self.revision
            after = decide(before)
            if after is before:
                return True
            done = yield from self.store_topic(after, revision, guard)
            if done is not None:
                return done
        return False

    def store_topic(self, after: Topic, revision: int, guard: int | None = None) -> Task:
        """Whether it is stored: None when another broker was first, or when that is not known."""
        expected = 0 if "writes without compare-and-set" in self.planted else revision
        checked = None if "a zombie controller writes" in self.planted else guard
        stored = yield from self.ask(lambda: self.store.write(after, expected, checked, guard))
        if isinstance(stored, int):
            self.apply(after, stored)
            return True
        if stored is Outcome.FENCED:
            self.controls = None
        return False if stored in (Outcome.FENCED, Outcome.EXPIRED) else None

    # The controller.

    def _control(self, session: Session) -> Task:
        while session is self.session and not session.expired:
            if self.controls is None:
                epoch = yield from self.ask(lambda: self.store.run_for_controller(session))
                if isinstance(epoch, int):
                    self.controls = epoch
                    yield from self.read()
                    live = yield from self.ask(self.store.live)
                    self.live = live if isinstance(live, dict) else self.live
                else:
                    yield self.sleep(self.world.random.uniform(10, 40))
                continue
            before, revision, epoch = self.topic, self.revision, self.controls
            after = self.decisions.reconcile(before, self.seen(), rules(before))
            if after is not before:
                yield self.sleep(self.world.random.uniform(0, 3))
                done = yield from self.store_topic(after, revision, epoch)
                if done is False and session.expired and self.world.chance(0.5):
                    # A client of the store may send it once more in the next session: the guard must notice.
                    yield self.sleep(self.world.random.uniform(40, 120))
                    yield from self.store_topic(after, revision, epoch)
                elif done is None:
                    yield from self.read()
                continue
            yield self.sleep(self.world.random.uniform(2, 8))

    # The ISR of led partitions.

    def alter(self, proposal: IsrProposal) -> Task:
        """Store a proposal; it is answered once it surely is stored or never will be."""
        while True:
            before, revision = self.topic, self.revision
            after, answers = self.decisions.alter(before, self.id, [proposal], self.seen(), rules(before))
            if answers[proposal.partition] is not ErrorCode.NONE:
                self.replicas.refused(proposal)
                return
            if (yield from self.store_topic(after, revision)) is not None:
                return
            while not (yield from self.read()):
                if self.session.expired:
                    return
                yield self.sleep(10)
            partition = self.topic.partitions[proposal.partition]
            if partition.partition_epoch > proposal.partition_epoch:
                return
