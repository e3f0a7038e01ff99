"""Sessions with ZooKeeper that end at the worst moments: ended on purpose, or slept through by a broker that stands still.

Whatever a broker is at, it goes on or stops with a sentence, nothing is lost, and in the end everything is whole again.

It takes about a minute: each moment of a broker's life is tried with either harm, and every one lasts as long as a session.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from pylog_spark.client import Admin
from tests.cluster.rounds import await_records
from tests.cluster.running import judge, running
from tests.harness.bench import WHOLE_WITHIN_S, ZOOKEEPER, Bench, end_name
from tests.harness.history import History, Outcome, Place
from tests.harness.runs import mostly_long, rounds
from tests.harness.waiting import let_pass, said, until
from tests.harness.watch import expire_session, sessions, steal_session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

Harm = Callable[[Bench, int], None]
_topics = (f"sessions-{number}" for number in count())
#: What ZooKeeper's answers take on their way to a broker that is to be caught at something.
_SLOW_S = 0.2
#: Moments of a start that are tried.
_STARTS = rounds("PYLOG_SESSION_STARTS", few=1, many=4)


@pytest.fixture
def places(bench: Bench) -> list[Place]:
    """Some partitions of a topic of their own, of which two replicas must have a record."""
    topic = next(_topics)
    bench.make_topic(topic, 3, min_insync_replicas=2)
    return [(topic, partition) for partition in range(3)]


def expire(bench: Bench, broker: int) -> None:
    """End its session, if it has one."""
    expire_session(bench.documents, broker)


def sleep(bench: Bench, broker: int) -> None:
    """Let it stand still for more than its session, a zombie when it wakes up."""
    bench.pause(broker)
    until(lambda: not bench.watcher.registered(broker), "its session is over")
    bench.brokers[broker].resume()
    bench.paused.discard(broker)


# In `make test` the zombies are those of test_failover.py.
HARMS = pytest.mark.parametrize("harm", mostly_long([expire, sleep], expire))


def assert_whole(bench: Bench, history: History, places: list[Place]) -> None:
    """Everybody is back, every record was taken, and the checker finds nothing."""
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, places) == []


def await_everybody(bench: Bench, history: History, places: list[Place]) -> None:
    """Wait until all brokers are there and in sync, and records are taken."""
    until(lambda: all(map(bench.watcher.registered, bench.ids)), "all brokers are registered")
    until(lambda: bench.watcher.controller in bench.ids, "a controller")
    await_records(history, places, time.monotonic())
    bench.await_whole({topic for topic, _ in places})


@pytest.mark.long  # test_membership.py
@pytest.mark.parametrize("moment", [number / _STARTS for number in range(_STARTS)])
def test_a_session_that_ends_while_its_broker_starts(bench: Bench, places: list[Place], moment: float) -> None:
    starting = bench.leader(places[0])
    with running(bench, places) as history, ThreadPoolExecutor(1) as pool:
        await_records(history, places)
        bench.kill(starting)
        until(lambda: not bench.watcher.registered(starting), "its session is over")
        known = sessions(bench.documents)
        began = time.monotonic()
        started = pool.submit(bench.start, starting)
        until(lambda: bool(sessions(bench.documents) - known), "it has a session")
        # Anywhere between its first question and its first lease.
        let_pass(moment * max(0.2, time.monotonic() - began))
        for session in sessions(bench.documents) - known:
            steal_session(bench.documents, session)
        started.result()
        await_everybody(bench, history, places)
    assert_whole(bench, history, places)


@pytest.mark.long  # test_failover.py, of a controller
@HARMS
def test_a_controller_whose_session_ends_as_soon_as_it_is_elected(
    bench: Bench, places: list[Place], harm: Harm
) -> None:
    with running(bench, places) as history:
        await_records(history, places)
        dead = next(broker_id for broker_id in bench.ids if broker_id != bench.watcher.controller)
        bench.kill(dead)
        until(lambda: not bench.watcher.registered(dead), "its session is over")
        # Each of the two is elected while there is something to decide.
        for epoch in range(bench.watcher.controller_epoch, bench.watcher.controller_epoch + 2):
            until(lambda: bench.watcher.controller in bench.ids, "a controller")
            harm(bench, bench.watcher.controller)
            until(lambda epoch=epoch: bench.watcher.controller_epoch > epoch, "another one is elected")
        bench.start(dead)
        await_everybody(bench, history, places)
    assert_whole(bench, history, places)


@pytest.mark.long  # an answer that is lost: below
@HARMS
def test_a_leader_whose_session_ends_while_it_changes_an_isr(bench: Bench, places: list[Place], harm: Harm) -> None:
    place = places[0]
    leader, slow = bench.leader(place), bench.followers(place)[0]
    with running(bench, places) as history:
        await_records(history, places)
        bench.network.delay(ZOOKEEPER, end_name(leader), _SLOW_S)
        bench.network.cut(end_name(slow), end_name(leader))
        # It is stored, and the leader does not know it yet.
        until(lambda: slow not in bench.watcher.state(place).isr, "a follower that is cut off leaves the ISR")
        harm(bench, leader)
        bench.heal()
        await_everybody(bench, history, places)
    assert_whole(bench, history, places)


@pytest.mark.long  # tests/simulation
@HARMS
@pytest.mark.parametrize("role", ["controller", "leader", "newcomer"])
def test_a_session_that_ends_while_replicas_move(bench: Bench, role: str, harm: Harm) -> None:
    topic = next(_topics)
    bench.make_topic(topic, 1, replicas=2, min_insync_replicas=1)
    place = (topic, 0)
    state = bench.watcher.state(place)
    (newcomer,) = set(bench.ids) - set(state.replicas)
    leader, target = state.leader, (newcomer, state.leader)
    with running(bench, [place]) as history, Admin(bench.servers) as admin:
        await_records(history, [place])
        bench.network.delay(end_name(leader), end_name(newcomer), _SLOW_S)
        assert admin.reassign({place: target})[0].error is None
        until(lambda: newcomer in bench.watcher.state(place).replicas, "the move begins")
        harm(bench, {"controller": bench.watcher.controller, "leader": leader, "newcomer": newcomer}[role])
        bench.heal()
        until(lambda: bench.watcher.state(place).replicas == target, "the move is done")
        await_everybody(bench, history, [place])
        # The document says so already; the broker that is asked applies it a moment later.
        until(lambda: admin.reassignments() == [], "every broker that is asked knows that the move is done")
    assert_whole(bench, history, [place])


@pytest.mark.long  # one that ends while it works: test_failover.py
@HARMS
def test_a_session_that_ends_while_its_broker_stops(bench: Bench, places: list[Place], harm: Harm) -> None:
    stopping = bench.leader(places[0])
    with running(bench, places) as history, ThreadPoolExecutor(1) as pool:
        await_records(history, places)
        bench.network.delay(ZOOKEEPER, end_name(stopping), _SLOW_S)
        began = time.monotonic()
        stopped = pool.submit(bench.stop, stopping)
        let_pass(_SLOW_S)
        if harm is expire:
            expire(bench, stopping)
        elif bench.brokers[stopping].running:
            bench.pause(stopping)
            until(lambda: not bench.watcher.registered(stopping), "its session is over")
            bench.brokers[stopping].resume()
            bench.paused.discard(stopping)
        stopped.result(WHOLE_WITHIN_S)
        print(f"stopped after {time.monotonic() - began:.2f} s")
        bench.network.heal()
        await_records(history, places, time.monotonic())
        bench.start(stopping)
        await_everybody(bench, history, places)
    assert_whole(bench, history, places)


def test_an_isr_change_whose_answer_is_lost_is_known_as_soon_as_zookeeper_answers(
    bench: Bench, places: list[Place]
) -> None:
    place = places[0]
    leader, slow = bench.leader(place), bench.followers(place)[0]
    process = bench.brokers[leader]
    with running(bench, places) as history:
        await_records(history, places)
        before = process.logs()
        bench.network.delay(ZOOKEEPER, end_name(leader), 2 * _SLOW_S)
        bench.network.cut(end_name(slow), end_name(leader))
        until(lambda: slow not in bench.watcher.state(place).isr, "a follower that is cut off leaves the ISR")
        # The answer is on its way, and never arrives.
        bench.network.reset(end_name(leader), ZOOKEEPER)
        bench.heal()
        healed = time.monotonic()
        taken_s = await_records(history, places, healed)
        # The next changes of ISRs, which wait for that answer.
        bench.await_whole({topic for topic, _ in places})
        whole_s = time.monotonic() - healed
        text = said(process, "the connection is lost", after=len(before))
    print(f"after a lost answer: a record after {taken_s:.2f} s, whole after {whole_s:.2f} s")
    assert "the session is over" not in text
    assert_whole(bench, history, places)
