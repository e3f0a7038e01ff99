"""A model of ZooKeeper as the cluster uses it: one topic document, registrations, a controller, sessions that expire.

A session's requests and answers keep their order; while its broker is cut off both are lost, and the broker does not know whether the
request was carried out. A session expires when it had no contact for `SESSION`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pylog_spark.cluster.model import Topic
from tests.simulation.oracle import Oracle
from tests.simulation.world import Host, Resume, World

SESSION = 200.0
TIMEOUT = 50.0
STORE = -1


class Outcome:
    """What a request can come to besides a result."""

    LOST = "lost"
    EXPIRED = "expired"
    CONFLICT = "conflict"
    FENCED = "fenced"


@dataclass(eq=False)
class Session:
    """Of one broker. `notify` hears which kind of document changed ("topics", "brokers") once `watching`."""

    host: Host
    notify: Callable[[str], None]
    began: float
    contact: float
    expired: bool = False
    watching: bool = False
    in_order: float = 0.0
    out_order: float = 0.0


class Store:
    """The documents. The operations at the end run at the store, one at a time."""

    def __init__(self, world: World, oracle: Oracle, topic: Topic) -> None:
        self.world = world
        self.oracle = oracle
        self.topic = topic
        self.revision = 1
        self.controller: Session | None = None
        self.controller_epoch = 0
        self.registered: dict[int, tuple[Session, int]] = {}
        # Brokers that have registered once.
        self.known: set[int] = set()
        self._sessions: list[Session] = []
        self._epochs = 0

    def connect(self, host: Host, notify: Callable[[str], None]) -> Session:
        session = Session(host, notify, self.world.now, self.world.now)
        self._sessions.append(session)
        self._watch_over(session)
        return session

    def request(self, session: Session, act: Callable[[], Any], resume: Resume) -> None:
        """Let `act` run at the store and `resume` with its outcome."""
        session.in_order = max(session.in_order, self.world.now + self.world.delay())
        self.world.after(session.in_order - self.world.now, lambda: self._arrived(session, act, resume))

    def _arrived(self, session: Session, act: Callable[[], Any], resume: Resume) -> None:
        if self._cut(session):
            self.world.after(TIMEOUT, lambda: resume(Outcome.LOST))
            return
        outcome = Outcome.EXPIRED
        if not session.expired:
            session.contact = self.world.now
            outcome = act()
        self._answer(session, lambda: resume(outcome), lambda: resume(Outcome.LOST))

    def _answer(self, session: Session, deliver: Callable[[], None], lost: Callable[[], None]) -> None:
        session.out_order = max(session.out_order, self.world.now + self.world.delay())

        def arrive() -> None:
            if self._cut(session):
                self.world.after(TIMEOUT, lost)
            else:
                deliver()

        self.world.after(session.out_order - self.world.now, arrive)

    def _cut(self, session: Session) -> bool:
        return (session.host.id, STORE) in self.world.cut

    def _watch_over(self, session: Session) -> None:
        if session.expired:
            return
        left = session.contact + SESSION - self.world.now
        if left > 0:
            self.world.after(left, lambda: self._watch_over(session))
        else:
            self.world.counts["sessions expired"] += 1
            self.expire(session)

    def expire(self, session: Session) -> None:
        """The session is over: what it held is gone."""
        session.expired = True
        self._sessions.remove(session)
        if self.controller is session:
            self.controller = None
        mine = self.registered.get(session.host.id)
        if mine is not None and mine[0] is session:
            del self.registered[session.host.id]
        self._tell("brokers")

    def _tell(self, kind: str) -> None:
        for session in self._sessions:
            if session.watching:
                self._deliver(session, kind)

    def _deliver(self, session: Session, kind: str) -> None:
        """A watch fires at last even when its broker was cut off for a while."""

        def again() -> None:
            if not session.expired:
                self._deliver(session, kind)

        self._answer(session, lambda: session.notify(kind), again)

    # What brokers do here.

    def live(self) -> dict[int, int]:
        """Registered brokers and their epochs."""
        return {broker: epoch for broker, (_, epoch) in self.registered.items()}

    def watch(self, session: Session) -> None:
        session.watching = True

    def register(self, session: Session) -> int | str:
        """The epoch of the registration of the session's broker; a conflict while another session holds it."""
        held = self.registered.get(session.host.id)
        if held is not None:
            return held[1] if held[0] is session else Outcome.CONFLICT
        self._epochs += 1
        self.registered[session.host.id] = (session, self._epochs)
        self.known.add(session.host.id)
        self._tell("brokers")
        return self._epochs

    def run_for_controller(self, session: Session) -> int | str:
        """The controller epoch of the session's broker when it controls."""
        if self.controller not in (None, session):
            return Outcome.CONFLICT
        if self.controller is None:
            self.world.counts["controllers elected"] += 1
        self.controller = session
        self.controller_epoch += 1
        return self.controller_epoch

    def write(
        self, topic: Topic, revision: int, guard: int | None = None, as_controller: int | None = None
    ) -> int | str:
        """Store the topic when it stands at `revision` (0: in any case) and `guard` is the controller epoch of now."""
        if guard is not None and guard != self.controller_epoch:
            self.world.counts["zombie controllers fenced"] += 1
            return Outcome.FENCED
        if revision not in (0, self.revision):
            self.world.counts["conflicts"] += 1
            return Outcome.CONFLICT
        self.oracle.controls(as_controller, self.controller_epoch)
        self.oracle.stored(self.topic, topic, self.world.now)
        self.topic = topic
        self.revision += 1
        self._tell("topics")
        return self.revision
