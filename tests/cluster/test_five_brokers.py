"""Five brokers, replication factor 5, min.insync.replicas 3: two brokers are killed at once, again and again, under a mixed load.

Of any two that die the three that are left have every acknowledged record, and enough of them are in sync to take more. So while
the two are down, every partition must take records with acks=all before they are started again; and at the end the checker goes over
what all the clients saw, as in `test_chaos`. 40 rounds in `make test-long`, 200 by `make five-brokers`.
"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pylog_spark.testing import ZooKeeper
from tests.cluster.faults import Fault, victim_of
from tests.cluster.rounds import Company, Shape, await_records, run
from tests.harness.bench import Bench
from tests.harness.history import Place
from tests.harness.mixed import MixedLoad
from tests.harness.runs import rounds, seed

ROUNDS = rounds("PYLOG_FIVE_ROUNDS", few=1, many=40)
SEED = seed("PYLOG_FIVE_SEED")
#: One cluster, and one history, for so many rounds.
_A_CAMPAIGN = 20
_ROUND_S = 60
_KILLED = 2


def _kill_two(role: str) -> Fault:
    """kill -9 of who has the role and of another broker, with nothing between them."""

    def fault(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
        first = victim_of(role, bench, randomness, places)
        second = randomness.choice([broker for broker in bench.ids if broker != first])
        for victim in (first, second):
            bench.kill(victim)

    return fault


_FAULTS = {f"kill the {role} and another": _kill_two(role) for role in ("leader", "controller", "follower")}
_INTERNAL = ("offsets_topic", "transaction_state_log", "share_coordinator_state_topic")
FIVE = Shape(
    brokers=5,
    min_insync_replicas=3,
    settings={
        **{f"{topic}_replication_factor": 5 for topic in _INTERNAL},
        "transaction_state_log_min_isr": 3,
        "share_coordinator_state_topic_min_isr": 3,
        # __consumer_offsets has the broker's.
        "min_insync_replicas": 3,
    },
    faults=_FAULTS,
)


class _WritesGoOn(Company):
    """While two brokers are down every partition takes records."""

    def __init__(self) -> None:
        #: Seconds from the kill until every partition had taken a record, of each round.
        self.without_s: list[float] = []

    @contextmanager
    def beside(self, bench: Bench) -> Iterator[None]:
        self._bench = bench
        yield

    def harmed(self, load: MixedLoad) -> None:
        running = sum(broker.running for broker in self._bench.brokers.values())
        assert running == FIVE.brokers - _KILLED
        self.without_s.append(await_records(self._bench.history, load.steady, time.monotonic()))


def plan(seed: int, rounds: int) -> list[tuple[str, ...]]:
    """One fault a round, each once before any comes again."""
    randomness, queue = random.Random(seed), list[str]()
    while len(queue) < rounds:
        queue += randomness.sample(list(_FAULTS), len(_FAULTS))
    return [(fault,) for fault in queue[:rounds]]


@pytest.mark.slow
@pytest.mark.long  # one of three brokers that dies: test_chaos.py
@pytest.mark.timeout(120 + ROUNDS * _ROUND_S)
def test_with_five_replicas_two_brokers_die_at_once_and_nothing_is_lost_while_writes_go_on(
    worker_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    print(f"seed {SEED}: set PYLOG_FIVE_SEED to repeat")
    planned, company = enumerate(plan(SEED, ROUNDS)), _WritesGoOn()
    for first in range(0, ROUNDS, _A_CAMPAIGN):
        wanted = min(_A_CAMPAIGN, ROUNDS - first)
        campaign = run(tmp_path / str(first), worker_zookeeper, SEED, planned, wanted, company=company, shape=FIVE)
        assert campaign.anomalies == [], f"seed {SEED}, rounds {[a_round.number for a_round in campaign.rounds]}"
        assert all(a_round.elections + a_round.isr_changes > 0 for a_round in campaign.rounds)
        assert campaign.bitten == wanted
    waited = sorted(company.without_s)
    assert len(waited) == ROUNDS
    print(f"seconds until every partition took a record: median {waited[len(waited) // 2]:.2f}, most {waited[-1]:.2f}")
