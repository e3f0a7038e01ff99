"""Rounds of faults under load: what was done, whether it bit, how long it took to be whole again, and what was found."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from pylog_spark.testing import ZooKeeper
from tests.cluster.checker import Anomaly, check
from tests.cluster.faults import FAULTS, KINDS, Fault
from tests.cluster.final import ends_of, note_groups, read_everything, take_the_rest
from tests.harness.bench import LAG_S, SESSION_S, Bench
from tests.harness.history import History, Outcome, Place
from tests.harness.mixed import COPIER, GROUP, MEMBERS, TAKERS, MixedLoad
from tests.harness.security import OPEN, Security
from tests.harness.waiting import let_pass, seconds_until, until

MIXED, SOURCE, TARGET = "mixed", "source", "target"
PARTITIONS = 2
#: How many faults a round has: none, so that the cluster can recover, one or two.
_HOW_MANY = ((0, 1), (1, 12), (2, 5))
_SHORTEST_S, _LONGEST_S = 0.8 * SESSION_S, 2 * max(SESSION_S, LAG_S)


@dataclass
class Round:
    """What one round did and showed.

    Attributes
    ----------
    outage_s : float
        The longest time in which a partition took no record.
    recovery_s : float
        From the heal until all replicas were in sync and every partition had taken a record.
    """

    number: int
    faults: tuple[str, ...]
    elections: int = 0
    isr_changes: int = 0
    truncations: int = 0
    controllers: int = 0
    retries: int = 0
    outage_s: float = 0.0
    recovery_s: float = 0.0

    @property
    def bitten(self) -> bool:
        """Whether the faults had any consequence."""
        return any((self.elections, self.isr_changes, self.truncations, self.controllers, self.retries))

    def __str__(self) -> str:
        what = ", ".join(self.faults) or "nothing"
        return (
            f"round {self.number}: {what}: {self.elections} elections, {self.isr_changes} ISR changes, "
            f"{self.truncations} truncations, {self.controllers} new controllers, {self.retries} troubled sends; "
            f"{self.outage_s:.2f} s without a record, {self.recovery_s:.2f} s to recover"
            + ("" if self.bitten else "; DID NOT BITE")
        )


@dataclass(frozen=True)
class Shape:
    """What a campaign runs on: how many brokers, replicas of each topic, and replicas that acks=all waits for; what befalls it; settings of
    single topics."""

    brokers: int = 3
    min_insync_replicas: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=lambda: FAULTS)
    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


#: Three brokers, each with a replica of everything.
THREE = Shape()


class Company:
    """What is done beside the load of a campaign; here nothing. Each raises AssertionError for what is wrong."""

    @contextmanager
    def beside(self, bench: Bench) -> Iterator[None]:
        """From before the first topic until all is read."""
        yield

    def harmed(self, load: MixedLoad) -> None:
        """The faults of a round are at work."""

    def healed(self) -> None:
        """They are undone, and the cluster is whole again."""

    def before(self, _place: Place, _offset: int) -> bytes:
        """The batches of a place before an offset at which a replica begins: none, or those that are kept where the replicas have them no more."""
        return b""


@dataclass
class Campaign:
    """Some rounds on one cluster, what the checker found at the end, and what became of records that the share group was given."""

    seed: int
    history: History = field(default_factory=History)
    rounds: list[Round] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    taken: Counter[Outcome] = field(default_factory=Counter)

    @property
    def bitten(self) -> int:
        """Rounds that count."""
        return sum(a_round.bitten for a_round in self.rounds)


def plan(seed: int, rounds: int) -> list[tuple[str, ...]]:
    """Faults of each round: first one of each kind, every fault once before any comes again, and now and then another one or none."""
    randomness = random.Random(seed)
    sizes, weights = zip(*_HOW_MANY, strict=True)
    queue: list[str] = []
    planned: list[tuple[str, ...]] = []
    for number in range(rounds):
        size = max(randomness.choices(sizes, weights)[0], 1 if number < len(KINDS) else 0)
        if size and not queue:
            queue = _all_faults(randomness)
        first = (queue.pop(),) if size else ()
        others = [fault for fault in FAULTS if fault not in first]
        planned.append((*first, *randomness.sample(others, max(0, size - 1))))
    return planned


def _all_faults(randomness: random.Random) -> list[str]:
    """Every fault once, one of each kind at the end, where they are taken from."""
    firsts = [randomness.choice(list(kind)) for kind in KINDS.values()]
    others = [fault for fault in FAULTS if fault not in firsts]
    return randomness.sample(others, len(others)) + randomness.sample(firsts, len(firsts))


def run(
    directory: Path,
    zookeeper: ZooKeeper,
    seed: int,
    planned: Iterable[tuple[int, tuple[str, ...]]],
    wanted: int,
    security: Security = OPEN,
    company: Company | None = None,
    shape: Shape = THREE,
) -> Campaign:
    """Run numbered rounds on a new cluster until `wanted` of them bit, read everything and check it. Prints each round."""
    campaign, rounds, company = Campaign(seed), iter(planned), company or Company()
    with (
        Bench(directory, zookeeper, shape.brokers, security=security, **shape.settings) as bench,
        company.beside(bench),
    ):
        campaign.history = bench.history
        for topic in (MIXED, SOURCE, TARGET):
            settings = {"min_insync_replicas": shape.min_insync_replicas, **shape.topics.get(topic, {})}
            bench.make_topic(topic, PARTITIONS, shape.brokers, **settings)
        load = MixedLoad(bench.way, bench.history, seed, MIXED, SOURCE, TARGET, PARTITIONS)
        load.start()
        bench.count_truncations()
        try:
            await_records(bench.history, load.steady)
            while campaign.bitten < wanted and (planned_round := next(rounds, None)) is not None:
                randomness = random.Random(f"{seed}/{planned_round[0]}")
                campaign.rounds.append(_round(bench, load, company, shape.faults, randomness, *planned_round))
                print(campaign.rounds[-1], flush=True)
        except BaseException:
            print(bench.logs(), flush=True)
            raise
        finally:
            stopped = _stopped(load)
        campaign.anomalies = judge(bench, load.places, company)
        campaign.taken = Counter(record.outcome for record in bench.history.taken)
        if stopped:
            campaign.anomalies.append(Anomaly("client", stopped))
        if campaign.anomalies:
            print(bench.logs(), flush=True)
    return campaign


def _stopped(load: MixedLoad) -> str:
    try:
        load.stop()
    except AssertionError as error:
        return str(error)
    return ""


def judge(bench: Bench, places: Sequence[Place], company: Company | None = None) -> list[Anomaly]:
    """Read everything, look at the brokers' files, and check the history."""
    history = bench.history
    bench.await_whole({place[0] for place in places})
    read_everything(bench.way, history, places)
    of = {topic: [place for place in places if place[0] == topic] for topic, _ in places}
    take_the_rest(bench.way, history, TAKERS, MIXED, of[MIXED])
    note_groups(bench.way, history, GROUP, COPIER, of[MIXED], of[SOURCE])
    before = (company or Company()).before
    bench.collect_replicas(history, ends_of(bench.way, places, committed_only=False), before)
    return check(history)


def await_copies(history: History, since: float) -> float:
    """Wait until a transaction of the copier that began after `since` is committed; the seconds it took."""

    def committed() -> bool:
        newest = takewhile(lambda send: send.began >= since, reversed(history.sends))
        transactions = (send.transaction for send in newest if send.source is not None)
        return any(transaction is not None and transaction.outcome is Outcome.OK for transaction in transactions)

    return seconds_until(committed, "the copier goes on")


def await_taken(history: History, since: float) -> float:
    """Wait until the share group has accepted a record that it was given after `since`; the seconds it took."""

    def accepted() -> bool:
        newest = takewhile(lambda record: record.ended >= since, reversed(history.taken))
        return any(record.outcome is Outcome.OK for record in newest)

    return seconds_until(accepted, "the share group goes on")


def await_members(history: History) -> None:
    """Wait until every member of the group has read something: on a busy machine a group that lost its coordinator takes its time."""

    def idle() -> set[str]:
        return set(MEMBERS) - {poll.consumer for poll in history.polls}

    until(lambda: not idle(), lambda: f"records read by {sorted(idle())}")


def producers_of(history: History) -> list[str]:
    """Who has sent anything."""
    return sorted({send.producer for send in history.sends})


def await_records(history: History, places: Sequence[Place], since: float = 0.0, producer: str | None = None) -> float:
    """Wait until every place has taken a record that was sent after `since`, by `producer` if given; the seconds it took."""
    waiting, seen = set(places), 0

    def all_of_them() -> bool:
        nonlocal seen
        while seen < len(history.sends) and history.sends[seen].began < since:
            seen += 1
        for send in history.sends[seen:]:
            if send.outcome is Outcome.OK and producer in (None, send.producer):
                waiting.discard(send.place)
        return not waiting

    return seconds_until(all_of_them, lambda: f"a record in each of {sorted(waiting)}")


def _round(
    bench: Bench,
    load: MixedLoad,
    company: Company,
    known: Mapping[str, Fault],
    randomness: random.Random,
    number: int,
    faults: tuple[str, ...],
) -> Round:
    this_round, history = Round(number, faults), bench.history
    topics = sorted({place[0] for place in load.places})
    states, controllers = len(history.states), bench.watcher.controllers
    truncated, retried = bench.truncations, load.retries()
    began = time.monotonic()
    for name in faults:
        known[name](bench, randomness, load.places)
        let_pass(randomness.uniform(0, 0.3))
    company.harmed(load)
    let_pass(randomness.uniform(_SHORTEST_S, _LONGEST_S))
    bench.heal()
    healed = history.healed[-1]
    await_records(history, load.steady, healed)
    bench.await_whole(topics)
    load.check_alive()
    this_round.recovery_s = time.monotonic() - healed
    await_copies(history, healed)
    await_taken(history, healed)
    await_members(history)
    company.healed()
    this_round.elections, this_round.isr_changes = _changes(history, states)
    this_round.controllers = bench.watcher.controllers - controllers
    this_round.truncations = bench.truncations - truncated
    # An aborted transaction gives up what it has not sent yet, without any fault.
    alone = (send for send in history.sends if send.began > began and send.transaction is None)
    troubled = (send for send in alone if send.ended < float("inf"))
    # What librdkafka counts begins anew with a broker's address.
    this_round.retries = sum(send.outcome is not Outcome.OK for send in troubled) + max(0, load.retries() - retried)
    this_round.outage_s = outage_s(history, load.steady, began)
    return this_round


def _changes(history: History, since: int) -> tuple[int, int]:
    """(elections, changes of an ISR) among the states from number `since` on."""
    newest = {state.place: state for state in history.states[:since]}
    elections = changes = 0
    for state in history.states[since:]:
        before = newest.get(state.place)
        if before is not None:
            elections += state.leader_epoch != before.leader_epoch
            changes += set(state.isr) != set(before.isr)
        newest[state.place] = state
    return elections, changes


def outage_s(history: History, places: Sequence[Place], since: float, producer: str | None = None) -> float:
    """The longest time after `since` in which one partition took no record; of `producer` only, when it is given."""
    longest = 0.0
    for place in places:
        taken = sorted(
            send.ended
            for send in history.sends
            if send.place == place
            and send.outcome is Outcome.OK
            and send.ended >= since
            and producer in (None, send.producer)
        )
        longest = max([longest, *(after - before for before, after in zip([since, *taken], taken, strict=False))])
    return longest
