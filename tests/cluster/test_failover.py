"""Failover step by step: what is acknowledged stays, what cannot be kept is refused, and a new leader is elected soon.

It takes more than a minute: nearly every test waits until sessions end and followers lag, and until dead brokers are back.
"""

import random
import signal
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

import pytest
from confluent_kafka import KafkaException, Producer

from pylog_spark._native import RawConnection
from pylog_spark.cluster.documents import topic_path
from tests.cluster.final import ends_of, read
from tests.cluster.rounds import await_records, outage_s, producers_of
from tests.cluster.running import judge, running
from tests.cluster.sharing import ask
from tests.harness.bench import SESSION_S, Bench
from tests.harness.history import History, Outcome, Place, Send, Transaction
from tests.harness.load import QUICK, SILENCE_S, begin_send, end_transaction, give_up, produce
from tests.harness.runs import mostly_long, rounds
from tests.harness.waiting import until
from tests.harness.watch import expire_session, stored_partitions, written_at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

_topics = (f"failover-{number}" for number in count())
_ANSWERED_S = 60.0
NOT_CONTROLLER = 41
#: What is found when acknowledged records are gone and others stand at their offsets.
_LOSS = {"lost write", "unseen", "inconsistent offsets", "nonmonotonic send"}


@pytest.fixture
def place(bench: Bench, request: pytest.FixtureRequest) -> Place:
    """One partition of a topic of its own; its settings are the test's `settings` parameter, or two replicas must have a record."""
    topic = next(_topics)
    bench.make_topic(topic, 1, **getattr(request, "param", {"min_insync_replicas": 2}))
    return topic, 0


class Attempt:
    """Sends one record after the other, each with a time-out of its own, and remembers what was said."""

    def __init__(self, bench: Bench, place: Place) -> None:
        self.history = History()
        self._place = place
        self._bench = bench
        settings = {"acks": "all", "retries": 0, "message.timeout.ms": 4_000, "request.timeout.ms": 1_500}
        self._producer = Producer({"bootstrap.servers": bench.servers, **QUICK, **settings})

    def send(self, records: int) -> list[Send]:
        """Send some and wait for what is said about them."""
        first = len(self.history.sends)
        for number in range(first, first + records):
            send = begin_send(self.history, f"{self._place[0]}-attempt", number, self._place)
            send.may_repeat = True
            produce(self._producer, send)
        assert self._producer.flush(_ANSWERED_S) == 0
        return self.history.sends[first:]

    def accepted(self) -> bool:
        """Whether one more record was acknowledged."""
        return self.send(1)[0].outcome is Outcome.OK

    def refused(self, records: int) -> list[Send]:
        """Send until the leader refuses, then some more; none may be acknowledged.

        The leader learns a moment after its document says so that its ISR is too small. What it wrote before is open for ever.
        """
        first = len(self.history.sends)
        until(lambda: self.send(1)[0].outcome is Outcome.FAILED, "the leader refuses")
        more = self.send(records)
        assert Outcome.OK not in {send.outcome for send in self.history.sends[first:]}
        return more

    def found(self) -> list[str]:
        """What is wrong, after all was read."""
        return judge(self._bench, self.history, [self._place])


def alone_in_isr(bench: Bench, place: Place, attempt: Attempt, required: int) -> int:
    """Cut the leader off from its followers until it is alone in an ISR of which `required` replicas must have a record; its id."""
    leader = bench.leader(place)
    bench.isolate(leader)
    # Who has all there is does not lag, however long it says nothing.
    (send,) = attempt.send(1)
    until(lambda: bench.watcher.state(place).isr == (leader,), "the ISR shrinks to the leader")
    if send.outcome is not Outcome.UNKNOWN:
        # Longer than the followers may lag: no answer says that all have it before they are out of the ISR.
        assert send.outcome is Outcome.OK
        assert required == 1
        assert send.ended >= written_at(bench.documents, topic_path(place[0]))
    return leader


def test_with_two_required_an_isolated_leader_refuses_and_nothing_is_lost_when_it_dies(
    bench: Bench, place: Place
) -> None:
    attempt = Attempt(bench, place)
    assert all(send.outcome is Outcome.OK for send in attempt.send(20))
    leader = alone_in_isr(bench, place, attempt, required=2)
    assert {send.outcome for send in attempt.refused(20)} == {Outcome.FAILED}
    bench.kill(leader)
    bench.network.heal()
    _await_leader_other_than(bench, place, leader)
    until(attempt.accepted, "the new leader accepts")
    bench.heal()
    assert attempt.found() == []


@pytest.mark.long  # with two, which is the default: above
@pytest.mark.parametrize("place", [{"min_insync_replicas": 1}], indirect=True)
def test_with_one_required_what_an_isolated_leader_acknowledged_waits_for_it(bench: Bench, place: Place) -> None:
    attempt = Attempt(bench, place)
    leader = alone_in_isr(bench, place, attempt, required=1)
    assert all(send.outcome is Outcome.OK for send in attempt.send(20))
    bench.kill(leader)
    bench.network.heal()
    until(lambda: bench.leader(place) == -1, "no replica leads")
    # No other replica has those records, so no other one may lead, however long it takes.
    assert not attempt.accepted()
    assert bench.watcher.state(place).isr == (leader,)
    bench.heal()
    until(attempt.accepted, "the only replica with all records leads again")
    assert attempt.found() == []


@pytest.mark.long  # the decision: tests/unit/cluster/test_decisions.py
@pytest.mark.parametrize("place", [{"min_insync_replicas": 1, "unclean_leader_election_enable": "true"}], indirect=True)
def test_an_unclean_leader_is_elected_only_where_it_is_allowed_and_the_loss_is_seen(bench: Bench, place: Place) -> None:
    attempt = Attempt(bench, place)
    assert all(send.outcome is Outcome.OK for send in attempt.send(5))
    leader = alone_in_isr(bench, place, attempt, required=1)
    lost = attempt.send(5)
    assert all(send.outcome is Outcome.OK for send in lost)
    bench.kill(leader)
    bench.network.heal()
    _await_leader_other_than(bench, place, leader)
    until(attempt.accepted, "it accepts records")
    bench.heal()
    found = attempt.found()
    assert found
    assert {sentence.partition(":")[0] for sentence in found} <= _LOSS
    assert any(send.value in sentence for send in lost for sentence in found)


def test_a_replica_that_may_lack_committed_records_does_not_lead_and_one_that_left_later_does(
    bench: Bench, place: Place
) -> None:
    attempt = Attempt(bench, place)
    assert all(send.outcome is Outcome.OK for send in attempt.send(10))
    early = bench.followers(place)[0]
    _kill_and_await(bench, place, early)
    assert all(send.outcome is Outcome.OK for send in attempt.send(10))
    late = _other_in_isr(bench, place)
    _kill_and_await(bench, place, late)
    # Alone in the ISR, with two required, the last one commits nothing more: the one that left now has all that was committed.
    assert {send.outcome for send in attempt.refused(5)} == {Outcome.FAILED}
    bench.kill(bench.leader(place))
    bench.start(early)
    until(lambda: bench.leader(place) == -1, "no replica leads")
    assert not attempt.accepted()
    assert bench.leader(place) == -1
    bench.start(late)
    until(attempt.accepted, "the one that left later leads, and the other one follows it")
    bench.heal()
    assert attempt.found() == []


def _kill_and_await(bench: Bench, place: Place, broker: int) -> None:
    bench.kill(broker)
    until(lambda: broker not in bench.watcher.state(place).isr, "a dead replica leaves the ISR")


@pytest.mark.long  # the decision: tests/unit/cluster
def test_a_replica_that_stopped_cleanly_below_the_required_number_may_lead(bench: Bench, place: Place) -> None:
    attempt = Attempt(bench, place)
    assert all(send.outcome is Outcome.OK for send in attempt.send(10))
    first = bench.followers(place)[0]
    _kill_and_await(bench, place, first)
    second = _other_in_isr(bench, place)
    bench.stop(second)
    until(lambda: second not in bench.watcher.state(place).isr, "a stopped replica leaves the ISR")
    bench.kill(bench.leader(place))
    # None was committed since it left: it has every committed record, whatever the last one may hold.
    bench.start(second)
    until(lambda: bench.leader(place) == second, "the one that stopped cleanly leads")
    bench.heal()
    until(attempt.accepted, "it accepts records once there are two")
    assert attempt.found() == []


def _await_leader_other_than(bench: Bench, place: Place, leader: int) -> None:
    until(lambda: bench.leader(place) not in (leader, -1), "another replica leads")


def _other_in_isr(bench: Bench, place: Place) -> int:
    state = bench.watcher.state(place)
    return next(broker_id for broker_id in state.isr if broker_id != state.leader)


@pytest.mark.long  # test_chaos.py
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],  # a clean stop: the rolling restart
    ids=["kill", "term"],
)
def test_the_leader_is_chased_and_every_record_is_there_once(
    bench: Bench, place: Place, number: signal.Signals
) -> None:
    outages = []
    with running(bench, [place]) as history:
        await_records(history, [place])
        for _ in range(rounds("PYLOG_CHASE_ROUNDS", few=2, many=5)):
            leader, began = bench.leader(place), time.monotonic()
            (bench.kill if number is signal.SIGKILL else bench.stop)(leader)
            _await_leader_other_than(bench, place, leader)
            await_records(history, [place], time.monotonic())
            outages.append(outage_s(history, [place], began))
            bench.start(leader)
            bench.await_whole([place[0]])
    print(f"{number.name}: without a record for", ", ".join(f"{outage:.2f} s" for outage in outages))
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, [place]) == []


def test_a_rolling_restart_under_load_fails_no_record(bench: Bench) -> None:
    topic = next(_topics)
    bench.make_topic(topic, 6, min_insync_replicas=2)
    places = [(topic, partition) for partition in range(6)]
    began = time.monotonic()
    with running(bench, places) as history:
        await_records(history, places)
        for broker in bench.ids:
            bench.stop(broker)
            assert not {broker, -1} & {partition.leader for partition in stored_partitions(bench.documents, topic)}
            bench.start(broker)
            bench.await_whole([topic])
    print(f"rolling restart: at most {outage_s(history, places, began):.2f} s without a record")
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, places) == []


@pytest.mark.long  # one that slept through it: below
@pytest.mark.parametrize("role", mostly_long(["leader", "follower", "controller"], "leader"))
def test_a_broker_whose_session_is_ended_goes_on_and_nothing_is_lost(bench: Bench, place: Place, role: str) -> None:
    victims = {
        "leader": bench.leader,
        "follower": lambda of: bench.followers(of)[0],
        "controller": lambda _: bench.watcher.controller,
    }
    victim = victims[role](place)
    process = bench.brokers[victim].pid
    with running(bench, [place]) as history:
        await_records(history, [place])
        assert expire_session(bench.documents, victim)
        ended = time.monotonic()
        until(lambda: bench.watcher.registered(victim) and bench.watcher.controller >= 0, "it is registered again")
        await_records(history, [place], ended)
        bench.await_whole([place[0]])
    assert bench.brokers[victim].pid == process
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, [place]) == []


def _leave_only_clients(bench: Bench, broker: int) -> None:
    bench.isolate(broker)
    bench.cut_off_zookeeper(broker)


@pytest.mark.parametrize(
    ("harm", "outage_max_s"),
    [
        # Clients notice only by their own time-outs that nothing answers: a record, the present leader, the connection made anew.
        pytest.param(Bench.pause, SESSION_S + 3 * SILENCE_S, marks=pytest.mark.long),
        pytest.param(Bench.cut_off_zookeeper, 3 * SESSION_S, marks=pytest.mark.long),
        (_leave_only_clients, 3 * SESSION_S),
    ],
    ids=["paused", "without ZooKeeper", "with clients only"],
)
def test_a_leader_that_slept_through_its_session_acknowledges_nothing_any_more(
    bench: Bench, place: Place, harm: Callable[[Bench, int], None], outage_max_s: float
) -> None:
    leader = bench.leader(place)
    with running(bench, [place]) as history:
        await_records(history, [place])
        began = time.monotonic()
        harm(bench, leader)
        _await_leader_other_than(bench, place, leader)
        for producer in producers_of(history):
            await_records(history, [place], time.monotonic(), producer)
        # Longer than its session, so that a zombie would have had time to harm.
        until(lambda: not bench.watcher.registered(leader), "its session is over")
        outages = [outage_s(history, [place], began, producer) for producer in producers_of(history)]
        bench.heal()
        bench.await_whole([place[0]])
    print("without a record of one producer for", ", ".join(f"{outage:.2f} s" for outage in outages))
    assert max(outages) < outage_max_s
    assert [send for send in history.sends if send.outcome is not Outcome.OK] == []
    assert judge(bench, history, [place]) == []


@pytest.mark.parametrize("role", mostly_long(["leader", "coordinator", "controller"], "coordinator"))
def test_a_session_that_ends_while_transactions_commit_tears_none(bench: Bench, role: str) -> None:
    topic = next(_topics)
    bench.make_topic(topic, 3, min_insync_replicas=2)
    places = [(topic, partition) for partition in range(3)]
    randomness = random.Random(role)
    name = f"{topic}-session"
    producer = Producer({"bootstrap.servers": bench.servers, **QUICK, "transactional.id": name})
    producer.init_transactions(30)
    # The first transaction of the file has made it this moment.
    bench.await_whole(["__transaction_state"])
    committed: list[set[str]] = []
    transactions = rounds("PYLOG_SESSION_TRANSACTIONS", few=6, many=10)
    for number in range(transactions):
        values = {f"{topic}/{number}/{place[1]}" for place in places}
        producer.begin_transaction()
        for place, value in zip(places, sorted(values), strict=True):
            producer.produce(place[0], value, partition=place[1])
        producer.flush(30)
        if number % 3 == 1:
            coordinators = [bench.leader(("__transaction_state", partition)) for partition in range(2)]
            victim = {"leader": bench.leader(places[0]), "controller": bench.watcher.controller}.get(
                role, randomness.choice(coordinators)
            )
            expire_session(bench.documents, victim)
        if _committed(producer):
            committed.append(values)
    # A commit is answered when it is decided; readers see it once every partition has its marker.
    until(
        lambda: ends_of(bench.way, places, committed_only=True) == ends_of(bench.way, places, committed_only=False),
        "every transaction has ended",
    )
    read_now = {value for some in read(bench.way, places, committed_only=True).values() for _, value in some}
    assert read_now == set().union(*committed)
    assert len(committed) >= transactions // 2


def _committed(producer: Producer) -> bool:
    """Whether the transaction was committed; else it was aborted."""
    transaction = Transaction("")
    try:
        end_transaction(producer, transaction, abort=False)
    except KafkaException as error:
        if not give_up(producer, transaction, error):
            raise
    return transaction.outcome is Outcome.OK


def test_a_controller_without_zookeeper_sends_clients_to_the_next_one_at_once(bench: Bench) -> None:
    victim, topic = bench.watcher.controller, next(_topics)
    bench.cut_off_zookeeper(victim)
    until(lambda: not bench.watcher.registered(victim), "its session is over")
    broker = bench.brokers[victim]
    # Much less than the time for which it waits for ZooKeeper.
    with closing(RawConnection(broker.host, broker.port, 5_000)) as connection:
        asked = [{"name": topic, "num_partitions": 1, "replication_factor": 2, "assignments": [], "configs": []}]
        (refused,) = ask(connection, "CreateTopics", 7, topics=asked, timeout_ms=30_000, validate_only=False)["topics"]
    assert refused["error_code"] == NOT_CONTROLLER
    # pylog's client asks the next one.
    with bench.admin(victim) as admin:
        assert admin.create_topic(topic, 1, 2).num_partitions == 1
    bench.heal()
    bench.await_whole([topic])
