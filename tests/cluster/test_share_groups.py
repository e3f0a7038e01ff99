"""Share groups (KIP-932) on three brokers: the leader of a partition says who gets which records, another broker keeps what became of
them, a third one coordinates the group; each of them may die.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pylog_spark.client import Admin
from pylog_spark.results.groups import SharePartitionOffsetInfo
from pylog_spark.testing import LocalCluster
from tests.cluster.coordinators import GROUPS, coordinator, partition_of
from tests.cluster.sharing import (
    ACCEPT,
    LOADING,
    NOT_LEADER,
    Member,
    Seen,
    Session,
    configure,
    join,
    move_leader,
    offsets,
    once,
    shown,
    state_key,
    topic_id,
)
from tests.harness.runs import rounds
from tests.harness.waiting import pause, until
from tests.interop.shares import LibrdkafkaMember, ShareGroup, ShareMember
from tests.peers.tools import java

PARTITIONS = 3
SHARES = "__share_group_state"
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
# Accepted of each partition while a broker is down, and with all of them.
_SOME = 20
_WAIT_S = 30.0
# Times that each broker is killed.
ROUNDS = rounds("PYLOG_SHARE_ROUNDS", 1, 10)


@pytest.fixture(scope="module")
def cluster_settings() -> dict[str, object]:
    """Deaths are noticed soon."""
    return {"zookeeper_session_timeout_ms": 1_000, "group_share_min_record_lock_duration_ms": 1_000}


@pytest.fixture
def topic(cluster: LocalCluster, new_topic: str) -> str:
    """A topic with a partition on each broker, and a group of the same name that begins at its start."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    assert {partition.leader for partition in cluster.describe_topic(new_topic)} == {1, 2, 3}
    configure_everywhere(cluster, new_topic, share_auto_offset_reset="earliest")
    return new_topic


def configure_everywhere(cluster: LocalCluster, group: str, **settings: object) -> None:
    """Settings of a group, once all brokers know them: who begins to lead before begins by others."""
    configure(cluster.brokers[0], group, **settings)
    for broker in cluster.brokers:
        for name, text in settings.items():
            asked = partial(shown, broker, group, name.replace("_", "."))
            until(lambda asked=asked, text=str(text): asked() == text, f"broker {broker.broker_id} knows it")


def produce(cluster: LocalCluster, topic: str, count: int) -> None:
    """So many records for each partition, some in a batch."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "batch.num.messages": 4}
    producer = Producer(settings)
    for number in range(count * PARTITIONS):
        producer.produce(topic, f"record-{number}", partition=number % PARTITIONS)
    assert producer.flush(_WAIT_S) == 0


def opened(cluster: LocalCluster, topic: str, partition: int, member: str) -> Session:
    """A session of a member with the leader of the partition."""
    join(cluster, topic, member, topic)
    leader = cluster.wait_for_leader(topic, partition)
    return Session(leader, topic, member, topic_id(cluster, topic), partition)


def acquired(cluster: LocalCluster, session: Session, enough: int) -> dict[int, int]:
    """Records that the session is given, at least so many of them."""
    came: dict[int, int] = {}

    def complete() -> bool:
        found = session.fetch(wait_ms=500, most=100)
        # A leader that others know of already may have to hear of it itself.
        assert found["error_code"] in (0, NOT_LEADER, *LOADING), found
        came.update(offsets(found))
        return len(came) >= enough

    cluster.wait_for(complete, f"{enough} records")
    return came


@pytest.mark.long  # librdkafka's below
@pytest.mark.peers
def test_members_of_kafkas_client_divide_three_partitions_on_three_leaders_and_its_tool_moves_the_group(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    produce(cluster, topic, 10)
    accepted: list[tuple[int, int]] = []
    with ShareGroup(cluster.bootstrap_servers, topic, tmp_path) as group:
        configure(cluster.brokers[1], group.name, share_auto_offset_reset="earliest")
        members = [group.start(max_poll_records=5) for _ in range(2)]
        readers = [threading.Thread(target=_take, args=(member, accepted, 10 * PARTITIONS)) for member in members]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        for member in members:
            member.close()
    assert sorted(accepted) == [(number, offset) for number in range(PARTITIONS) for offset in range(10)]
    assert all_is_read(cluster, group.name)
    tool = partial(java, TOOL, "--bootstrap-server", cluster.bootstrap_servers)
    of_group = ("--group", group.name)
    assert tool("--describe", *of_group).count(topic) >= PARTITIONS
    with Admin(cluster.bootstrap_servers) as admin:
        cluster.wait_for(lambda: admin.group(group.name).state == "Empty", "the group is empty")
    tool("--reset-offsets", *of_group, "--topic", topic, "--to-earliest", "--execute")
    assert lags(cluster, group.name) == [10] * PARTITIONS
    tool("--delete", *of_group)
    assert lags(cluster, group.name) == []


def _take(member: ShareMember, accepted: list[tuple[int, int]], all_of_them: int) -> None:
    while len(accepted) < all_of_them:
        records = member.poll(500)
        member.acknowledge("accept", *records)
        if records:
            assert set(member.commit().values()) == {"ok"}
        accepted += [(record.partition, record.offset) for record in records]


@pytest.mark.long  # whichever broker is killed: below
def test_members_of_librdkafka_divide_three_partitions_on_three_leaders_one_of_which_is_killed(
    cluster: LocalCluster, topic: str
) -> None:
    produce(cluster, topic, 50)
    # What an answer had that a member lost with its connection is given out again only when its lock is over.
    configure_everywhere(cluster, topic, share_record_lock_duration_ms=5_000)
    confirmed, unsure, done = Counter[tuple[int, int]](), set[tuple[int, int]](), threading.Event()

    def read() -> None:
        with closing(LibrdkafkaMember(cluster.bootstrap_servers, topic, topic, max_poll_records=4)) as member:
            while not done.is_set():
                records = member.poll(200)
                member.acknowledge("accept", *records)
                outcome = member.commit()
                for record in records:
                    if outcome[record.partition] == "ok":
                        confirmed[record.partition, record.offset] += 1
                    else:
                        unsure.add((record.partition, record.offset))

    def all_brought() -> bool:
        failed = [reader.exception() for reader in readers if reader.done()]
        assert failed == []
        return all_is_read(cluster, topic)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            until(lambda: len(confirmed) > 30, "some are accepted", _WAIT_S)
            cluster.wait_for_leader(topic, 0).kill()
            produce(cluster, topic, 10)
            cluster.wait_for(all_brought, "everything is done with")
        finally:
            done.set()
    assert set(confirmed.values()) == {1}, "one was accepted twice"
    assert confirmed.keys() | unsure == {(number, offset) for number in range(PARTITIONS) for offset in range(60)}
    assert len(confirmed) > 3 * 60 * 0.9


class Writer:
    """Appends records all the time."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 5}
        self._producer = Producer({**settings, "enable.idempotence": True, "reconnect.backoff.max.ms": 200})
        self._topic, self._stopped, self.written = topic, threading.Event(), set[tuple[int, int]]()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Returns when all are written."""
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(_WAIT_S) == 0

    def _run(self) -> None:
        while not pause(self._stopped, 0.02):
            for number in range(PARTITIONS):
                self._producer.produce(self._topic, "record", partition=number, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error, message) -> None:
        assert error is None
        self.written.add((message.partition(), message.offset()))


@pytest.mark.timeout(90 + 20 * ROUNDS)
def test_what_was_accepted_is_not_delivered_again_whichever_broker_is_killed(cluster: LocalCluster, topic: str) -> None:
    seen = Seen()
    members = [
        Member(cluster, topic, topic, number, f"member-{number}-{member}", seen).start()
        for number in range(PARTITIONS)
        for member in range(2)
    ]
    try:
        with Writer(cluster, topic) as writer:
            for broker in cluster.brokers * ROUNDS:
                _wait_for_more(seen)
                broker.kill()
                _wait_for_more(seen)
                broker.start()
                cluster.wait_in_sync()
            _wait_for_more(seen)
        cluster.wait_for(lambda: all_is_read(cluster, topic), "everything is done with")
    finally:
        for member in members:
            member.stop()
    assert seen.wrong == []
    # An answer that died with its broker leaves open what it said.
    assert writer.written <= seen.said
    assert len(seen.accepted) > len(seen.said) * 0.9


def lags(cluster: LocalCluster, group: str) -> list[int | None]:
    """How far the group is behind, of each partition of which it has read."""
    with Admin(cluster.bootstrap_servers) as admin:
        return [offset.lag for offset in admin.share_group_offsets(group).values()]


def all_is_read(cluster: LocalCluster, group: str) -> bool:
    """Whether the group is at the end of every partition. One that nobody has read from yet has no lag, whatever it holds."""
    return lags(cluster, group) == [0] * PARTITIONS


def _wait_for_more(seen: Seen) -> None:
    """Records of each partition are accepted, so also of those that another broker has to lead first."""
    enough = {number: seen.count(number) + _SOME for number in range(PARTITIONS)}

    def more() -> bool:
        return all(seen.count(number) >= least for number, least in enough.items())

    until(more, "records of each partition are accepted", _WAIT_S)


def test_what_was_acquired_when_the_leader_moved_is_delivered_by_the_next_and_what_was_accepted_is_not(
    cluster: LocalCluster, topic: str
) -> None:
    produce(cluster, topic, 10)
    with opened(cluster, topic, 0, "a") as first:
        assert acquired(cluster, first, 10).keys() == set(range(10))
        assert first.acknowledge({2: ACCEPT, 3: ACCEPT, 4: ACCEPT})["error_code"] == 0
        after = move_leader(cluster, topic, 0)
        answer = {}

        def refused() -> bool:
            # A record that is done with: while it still leads, nothing else changes.
            answer.update(first.acknowledge({2: ACCEPT}))
            return bool(answer["current_leader"]["leader_id"] == after.broker_id)

        until(refused, "the one before knows who leads")
        assert answer["error_code"] == NOT_LEADER
        cluster.wait_in_sync(topic)
        with opened(cluster, topic, 0, "b") as second:
            assert acquired(cluster, second, 7).keys() == set(range(10)) - {2, 3, 4}
            assert second.acknowledge(dict.fromkeys((0, 1, 5, 6, 7, 8, 9), ACCEPT))["error_code"] == 0


def test_acknowledgements_wait_for_the_next_leader_of_the_state(cluster: LocalCluster, topic: str) -> None:
    produce(cluster, topic, 10)
    with opened(cluster, topic, 0, "a") as session:
        came = acquired(cluster, session, 10)
        leader, key = cluster.leader(topic, 0), state_key(topic, topic_id(cluster, topic), 0)
        keeper = coordinator(cluster, SHARES, key)
        if keeper is leader:
            move_leader(cluster, SHARES, partition_of(key, len(cluster.describe_topic(SHARES))))
            keeper = coordinator(cluster, SHARES, key)
        keeper.kill()
        outcome = {}

        def said() -> bool:
            outcome.update(session.acknowledge(dict.fromkeys(came, ACCEPT)))
            assert outcome["error_code"] in (0, *LOADING), outcome
            return bool(outcome["error_code"] == 0)

        until(said, "it is written down", _WAIT_S)
    keeper.start()
    with opened(cluster, topic, 0, "b") as session:
        assert offsets(session.fetch()) == {}


def test_a_setting_of_a_group_that_is_set_at_one_broker_acts_at_all(cluster: LocalCluster, new_topic: str) -> None:
    name = "share.record.lock.duration.ms"
    for setter in cluster.brokers:
        lock_ms = str(20_000 + setter.broker_id)
        configure(setter, new_topic, share_record_lock_duration_ms=lock_ms)
        for broker in cluster.brokers:
            until(lambda at=broker, ms=lock_ms: shown(at, new_topic, name) == ms, "all brokers know it")
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topic(new_topic, PARTITIONS, 3)
    cluster.wait_in_sync(new_topic)
    for partition in range(PARTITIONS):
        with opened(cluster, new_topic, partition, f"member-{partition}") as session:
            answer = session._send(
                "ShareFetch", {}, max_wait_ms=0, min_bytes=0, max_bytes=1, max_records=1, batch_size=1
            )
            assert answer["acquisition_lock_timeout_ms"] == 20_003


def test_a_group_is_described_moved_and_deleted_through_any_broker(cluster: LocalCluster, topic: str) -> None:
    produce(cluster, topic, 10)
    for partition in range(PARTITIONS):
        with opened(cluster, topic, partition, "a") as session:
            came = acquired(cluster, session, 10)
            assert session.acknowledge(dict.fromkeys(list(came)[:4], ACCEPT))["error_code"] == 0
    keeper = coordinator(cluster, GROUPS, topic)
    leaves = {"group_id": topic, "member_id": "a", "member_epoch": -1}
    assert once(keeper, "ShareGroupHeartbeat", 1, **leaves)["error_code"] == 0
    everywhere = {(topic, number) for number in range(PARTITIONS)}
    for broker in cluster.brokers:
        with Admin(broker.bootstrap_servers) as admin:
            found = admin.share_group_offsets(topic)
            start = 4 if broker is cluster.brokers[0] else 2
            assert found == dict.fromkeys(everywhere, SharePartitionOffsetInfo(start, 10 - start))
            admin.alter_share_group_offsets(topic, dict.fromkeys(everywhere, 2))
            assert admin.group(topic).state == "Empty"
    with opened(cluster, topic, 1, "b") as session:
        assert acquired(cluster, session, 8).keys() == set(range(2, 10)), "it begins where it was moved to"
    assert once(keeper, "ShareGroupHeartbeat", 1, **{**leaves, "member_id": "b"})["error_code"] == 0
    with Admin(cluster.brokers[2].bootstrap_servers) as admin:
        (gone,) = admin.delete_groups([topic])
        assert gone.error is None
        assert admin.share_group_offsets(topic) == {}
    with opened(cluster, topic, 2, "c") as session:
        assert acquired(cluster, session, 10).keys() == set(range(10)), "nothing of it is left"


@pytest.fixture(autouse=True)
def _all_run(cluster: LocalCluster) -> Iterator[None]:
    yield
    for broker in cluster.brokers:
        if not broker.running:
            broker.start()
