"""ConsumerGroup with a real ZooKeeper and a real broker: members as processes that join, leave, die and stand still."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pylog_spark.client import Admin, LogError, Producer
from pylog_spark.cluster.store.zookeeper import ZooKeeperStore
from pylog_spark.consumer_group import ConsumerGroup, Rebalance, documents
from pylog_spark.testing import LocalBroker, ZooKeeper
from pylog_spark.topic_partition import TopicPartition
from tests.harness.ports import nowhere
from tests.harness.waiting import during, stays, until
from tests.harness.watch import steal_session

PARTITIONS = 6
SESSION_MS = 2_000
#: A machine that is busy answers late, and a ZooKeeper that has just started later still: no session waits for that.
CONNECTION_MS = 60_000
DEADLINE_S = 60.0
OPTIONS = {"start": "earliest", "session_timeout_ms": SESSION_MS, "connection_timeout_ms": CONNECTION_MS}
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"grouped-{next(_NUMBERS)}"
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def join(zookeeper: ZooKeeper, broker: LocalBroker, topic: str) -> Iterator[Callable[..., ConsumerGroup]]:
    """Makes members of one group in this process, and closes them."""
    members: list[ConsumerGroup] = []

    def make(name: str, **options: object) -> ConsumerGroup:
        given = {**OPTIONS, **options}
        address = f"{zookeeper.address}/{topic}"
        servers = broker.bootstrap_servers
        member = ConsumerGroup(address, "g", [topic], bootstrap_servers=servers, consumer_id=name, **given)  # type: ignore[arg-type]
        members.append(member)
        return member

    yield make
    for member in members:
        member.close()


def write(broker: LocalBroker, topic: str, values: range) -> None:
    with Producer(broker.bootstrap_servers, topic) as producer:
        for value in values:
            producer.send(str(value).encode(), partition=value % PARTITIONS)


def drain(*members: ConsumerGroup, count: int) -> list[int]:
    """The values of the next `count` records that the members are handed."""
    values: list[int] = []

    def enough() -> bool:
        for member in members:
            values.extend(int(record.value or b"-1") for record in member.poll(0.05))
        return len(values) >= count

    until(enough, lambda: f"{count} records, {len(values)} came", DEADLINE_S)
    return values


def handed_out(member: ConsumerGroup, wanted: range) -> None:
    """Poll until the member was handed all of some values, each once or more."""
    values: set[int] = set()

    def all_of_them() -> bool:
        values.update(int(record.value or b"-1") for record in member.poll(0.1))
        return values >= set(wanted)

    until(all_of_them, lambda: f"all of {wanted}, {len(values)} came", DEADLINE_S)


def share_evenly(*members: ConsumerGroup) -> None:
    """Poll until every partition has an owner and shares are even. Nothing may be there to read."""

    def even() -> bool:
        for member in members:
            assert member.poll(0.02) == []
        sizes = [len(member.assignment) for member in members]
        return sum(sizes) == PARTITIONS and max(sizes) - min(sizes) <= 1

    until(even, "an even share each", DEADLINE_S)


def stored(zookeeper: ZooKeeper, topic: str) -> dict[int, int]:
    """The group's offsets, as they stand in ZooKeeper."""
    store = ZooKeeperStore(f"{zookeeper.address}/{topic}", CONNECTION_MS, CONNECTION_MS, lambda _: None)
    try:
        paths = [documents.offset_path("g", TopicPartition(topic, partition)) for partition in range(PARTITIONS)]
        return {at: int(document.data) for at, document in enumerate(store.get_all(paths)) if document is not None}
    finally:
        store.close()


def test_members_share_the_partitions_and_go_on_where_the_group_was(
    join: Callable[..., ConsumerGroup], broker: LocalBroker, topic: str
) -> None:
    write(broker, topic, range(600))
    first = join("a")
    assert sorted(drain(first, count=600)) == list(range(600))
    second = join("b")
    share_evenly(first, second)
    assert first.assignment == {(topic, partition) for partition in (0, 1, 2)}
    write(broker, topic, range(600, 900))
    assert sorted(drain(first, second, count=300)) == list(range(600, 900))
    first.close()
    share_evenly(second)
    write(broker, topic, range(900, 1000))
    assert sorted(drain(second, count=100)) == list(range(900, 1000))


def test_records_that_were_not_processed_are_delivered_again_and_the_others_are_not(
    join: Callable[..., ConsumerGroup], broker: LocalBroker, topic: str
) -> None:
    def fail_at_the_tenth(member: ConsumerGroup) -> None:
        with member:
            for count, _ in enumerate(member):
                assert count < 9

    write(broker, topic, range(60))
    with pytest.raises(AssertionError):
        fail_at_the_tenth(join("a"))
    rest = drain(join("b"), count=51)
    assert len(rest) == len(set(rest)) == 51


def test_without_auto_commit_only_commit_moves_the_group(
    join: Callable[..., ConsumerGroup], zookeeper: ZooKeeper, broker: LocalBroker, topic: str
) -> None:
    write(broker, topic, range(60))
    member = join("a", auto_commit=False)
    drain(member, count=60)
    assert sum(stored(zookeeper, topic).values()) == 0
    member.commit()
    assert stored(zookeeper, topic) == dict.fromkeys(range(PARTITIONS), 10)


def test_a_program_learns_which_partitions_it_releases_in_time_to_commit(
    join: Callable[..., ConsumerGroup], broker: LocalBroker, topic: str
) -> None:
    events: list[Rebalance] = []

    def on_rebalance(event: Rebalance) -> None:
        events.append(event)
        if event.what == "releasing":
            first.commit()

    write(broker, topic, range(60))
    first = join("a", auto_commit=False, on_rebalance=on_rebalance)
    drain(first, count=60)
    second = join("b", auto_commit=False)
    share_evenly(first, second)
    assert [event.what for event in events] == ["claimed", "releasing"]
    assert events[1].partitions == {(topic, partition) for partition in (3, 4, 5)}
    write(broker, topic, range(60, 120))
    assert sorted(drain(first, second, count=60)) == list(range(60, 120))


def test_a_session_that_is_over_gives_up_everything_at_once_and_its_commit_moves_nothing(
    join: Callable[..., ConsumerGroup], zookeeper: ZooKeeper, broker: LocalBroker, topic: str
) -> None:
    events: list[str] = []
    member = join("a", auto_commit=False, on_rebalance=lambda event: events.append(event.what))
    write(broker, topic, range(60))
    drain(member, count=60)
    assert steal_session(zookeeper.address, member._store.session())  # type: ignore[arg-type]
    with pytest.raises(LogError, match="since the last commit again"):
        member.commit()
    assert sum(stored(zookeeper, topic).values()) == 0
    # It registers anew and is handed what it did not commit.
    assert sorted(drain(member, count=60)) == list(range(60))
    assert events[-2:] == ["lost", "claimed"]


@pytest.mark.long  # a session that is over: above
def test_while_zookeeper_is_down_nothing_is_delivered_after_the_session_and_all_of_it_later(
    join: Callable[..., ConsumerGroup], zookeeper: ZooKeeper, broker: LocalBroker, topic: str
) -> None:
    member = join("a")
    write(broker, topic, range(60))
    drain(member, count=60)
    zookeeper.kill()
    for _ in during(SESSION_MS / 1000):
        member.poll(0.1)
    write(broker, topic, range(60, 120))
    stays(lambda: member.poll(0.1) == [], "nothing is delivered", for_s=1)
    zookeeper.start()
    handed_out(member, range(60, 120))


@pytest.mark.long  # a session that is over: above
def test_a_zookeeper_that_answers_late_is_waited_for_longer_than_a_session_lasts(
    join: Callable[..., ConsumerGroup], zookeeper: ZooKeeper, broker: LocalBroker, topic: str
) -> None:
    session_s = 0.5
    zookeeper.pause()
    late = threading.Timer(3 * session_s, zookeeper.resume)
    late.start()
    write(broker, topic, range(60))
    handed_out(join("a", session_timeout_ms=int(session_s * 1000)), range(60))
    late.join()


def test_new_partitions_of_a_growing_topic_are_shared_too(
    zookeeper: ZooKeeper, broker: LocalBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pylog_spark.consumer_group import member as member_module

    # This broker does not keep its topics in ZooKeeper: they are asked for now and then.
    monkeypatch.setattr(member_module, "_LOOK_AGAIN_S", 0.2)
    address, servers = f"{zookeeper.address}/{topic}", broker.bootstrap_servers
    with ConsumerGroup(address, "g", [topic], bootstrap_servers=servers, start="earliest") as member:
        share_evenly(member)
        with Admin(servers) as admin:
            admin.create_partitions(topic, PARTITIONS + 2)
        until(
            lambda: member.poll(0.02) == [] and len(member.assignment) == PARTITIONS + 2,
            "two more partitions",
            DEADLINE_S,
        )


def test_a_group_without_brokers_or_zookeeper_or_with_a_bad_name_is_refused_with_a_sentence(
    zookeeper: ZooKeeper, broker: LocalBroker
) -> None:
    with pytest.raises(LogError, match="No broker is registered"):
        ConsumerGroup(f"{zookeeper.address}/empty", "g", ["t"])
    with pytest.raises(LogError, match="No ZooKeeper answers"):
        ConsumerGroup(nowhere(), "g", ["t"], session_timeout_ms=500)
    with pytest.raises(ValueError, match="group="):
        ConsumerGroup(zookeeper.address, "a/b", ["t"])
    with pytest.raises(LogError, match="does not exist"):
        ConsumerGroup(zookeeper.address, "g", ["absent"], bootstrap_servers=broker.bootstrap_servers)


class Process:
    """A member as a process."""

    def __init__(self, arguments: list[str], file: Path) -> None:
        self.file = file
        command = [sys.executable, "-m", "tests.cluster.group_member", *arguments, str(file)]
        self.child = subprocess.Popen(command)

    def events(self) -> list[list[str]]:
        text = self.file.read_text() if self.file.exists() else ""
        return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def owned(self) -> set[str]:
        """The partitions that it owns, by its own account."""
        owned: set[str] = set()
        for what, _, *partitions in self.events():
            if what != "record":
                owned = owned | set(partitions) if what == "claimed" else owned - set(partitions)
        return owned

    def send(self, number: int) -> None:
        self.child.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.child.poll() is None:
            self.send(signal.SIGCONT)
            self.send(number)
        self.child.wait(DEADLINE_S)


def owners_overlap(members: list[Process]) -> list[str]:
    """What a member was handed of a partition after another had claimed it, and before it claimed it again itself."""
    lines = sorted((int(event[1]), number, event) for number, member in enumerate(members) for event in member.events())
    owner: dict[str, int] = {}
    wrong = []
    for _, number, event in lines:
        if event[0] == "claimed":
            owner.update(dict.fromkeys(event[2:], number))
        elif event[0] == "record" and owner.get(event[2], number) != number:
            wrong.append(f"member {number} was handed {event[2:]} which member {owner[event[2]]} owned")
    return wrong


def test_members_that_join_leave_die_and_pause_deliver_every_record(
    zookeeper: ZooKeeper, broker: LocalBroker, topic: str, tmp_path: Path
) -> None:
    members: list[Process] = []
    arguments = [f"{zookeeper.address}/{topic}", broker.bootstrap_servers, "g", topic]
    written = itertools.count(step=120)

    def more() -> None:
        begin = next(written)
        write(broker, topic, range(begin, begin + 120))

    def start() -> Process:
        members.append(Process(arguments, tmp_path / f"member-{len(members)}"))
        return members[-1]

    def handed(*some: Process) -> int:
        return sum(event[0] == "record" for member in some for event in member.events())

    def works(*some: Process) -> None:
        """Each of them is handed something of what is written from now on."""
        before = {id(member): handed(member) for member in some}

        def all_busy() -> bool:
            more()
            return all(handed(member) > before[id(member)] for member in some)

        until(all_busy, "every member has work", DEADLINE_S)

    try:
        first, second = start(), start()
        works(first, second)
        third = start()
        works(first, second, third)
        second.end(signal.SIGKILL)
        works(first, third)
        first.send(signal.SIGSTOP)
        until(lambda: len(third.owned()) == PARTITIONS, "the other owns all", DEADLINE_S)
        works(third)
        first.send(signal.SIGCONT)
        works(first, third)
        fourth = start()
        works(first, third, fourth)
        third.end()
        works(first, fourth)
        total = next(written)
        expected = set(range(total))

        def seen() -> set[int]:
            return {int(event[4]) for member in members for event in member.events() if event[0] == "record"}

        until(lambda: seen() >= expected, "every record was handed out", DEADLINE_S)
    finally:
        for member in members:
            member.end()
    assert owners_overlap(members) == []
    # The faults bit: a session was lost, and shares moved.
    events: dict[str, int] = defaultdict(int)
    for member in members:
        for event in member.events():
            events[event[0]] += 1
    assert events["lost"] >= 1
    assert events["releasing"] >= 2
    assert os.path.exists(members[1].file)
