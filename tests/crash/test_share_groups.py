"""kill -9 of the broker while members of a share group acknowledge: what was acknowledged with an answer is not delivered again, all else
is delivered, and nothing more often than it may be.

3 rounds in `make test`, 30 in a long run, or as PYLOG_SHARE_ROUNDS says.
"""

import json
import random
import threading
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pylog_spark._native import NativeError, RawConnection
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker
from tests.harness.runs import rounds, seed
from tests.harness.waiting import until
from tests.oracle.batches import batch

ROUNDS = rounds("PYLOG_SHARE_ROUNDS", 3, 30)
SEED = seed("PYLOG_SHARE_SEED")
GROUP, TOPIC, MEMBERS = "group", "work", 3
DELIVERIES_MAX = 5
# There are so many records from the start, and as many new ones as members take: they last as long as the rounds do.
RECORDS, TOGETHER = 400, 4
ACCEPT, RELEASE = 1, 2
# The rest is released.
_ACCEPTED = 0.9
_GROUP_RESOURCE, _SET = 32, 0
_LOADING = (14, 15, 16)


def ask(connection: RawConnection, api: str, version: int, **fields: Any) -> dict[str, Any]:
    """One request."""
    answer: dict[str, Any] = json.loads(connection.call(api, version, json.dumps(fields)))
    return answer


@dataclass
class Seen:
    """What all members saw; `wrong` is what must not be."""

    deliveries: dict[int, int] = field(default_factory=dict)
    #: When the answer was there that says so.
    accepted: dict[int, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def delivered(self, offset: int, count: int, asked: float) -> None:
        """A record came in the answer to what was asked at `asked`."""
        with self.lock:
            self.deliveries[offset] = max(count, self.deliveries.get(offset, 0))
            if self.accepted.get(offset, asked) < asked:
                self.wrong.append(f"{offset} was accepted and came again")
            if count > DELIVERIES_MAX:
                self.wrong.append(f"{offset} came for the {count}th time")

    def acknowledged(self, offsets: Iterable[int]) -> None:
        """The broker says that it took it."""
        with self.lock:
            self.accepted.update((offset, time.perf_counter()) for offset in offsets)

    def has(self, enough: int) -> bool:
        """Whether so many are accepted; fails at what is wrong."""
        assert self.wrong == []
        return len(self.accepted) >= enough


class Member:
    """Acquires and acknowledges, over and over, with a new session after each kill; appends as many records as it got, unless it is the
    last one.
    """

    def __init__(self, broker: LocalBroker, name: str, topic_id: str, seen: Seen, *, is_last: bool = False) -> None:
        self._broker, self._name, self._topic_id, self._seen, self._is_last = broker, name, topic_id, seen, is_last
        self._randomness = random.Random(f"{SEED} {name}")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> "Member":
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End after the request that is under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                # The broker is dead, or dies: there is another session when it is back.
                with suppress(NativeError):
                    self._session()
        except Exception as error:  # noqa: BLE001  # the test reports it
            self._seen.wrong.append(f"{self._name}: {error!r}")

    def _session(self) -> None:
        connection = RawConnection(self._broker.host, self._broker.port)
        try:
            said = {"group_id": GROUP, "member_id": self._name, "subscribed_topic_names": [TOPIC]}
            answer = ask(connection, "ShareGroupHeartbeat", 1, member_epoch=0, **said)
            while answer["error_code"] in _LOADING:
                ask(connection, "FindCoordinator", 6, key_type=0, coordinator_keys=[GROUP])
                answer = ask(connection, "ShareGroupHeartbeat", 1, member_epoch=0, **said)
            assert answer["error_code"] == 0, answer
            epoch, fates = 0, dict[int, int]()
            while not self._stopped.is_set():
                fates = self._fetch(connection, epoch, fates)
                epoch += 1
        finally:
            connection.close()

    def _fetch(self, connection: RawConnection, epoch: int, fates: dict[int, int]) -> dict[int, int]:
        batches = [
            {"first_offset": offset, "last_offset": offset, "acknowledge_types": [fate]}
            for offset, fate in sorted(fates.items())
        ]
        partition = {"partition_index": 0, "acknowledgement_batches": batches}
        limits = {"max_wait_ms": 20, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
        request = {"group_id": GROUP, "member_id": self._name, "share_session_epoch": epoch, **limits}
        asked = time.perf_counter()
        answer = ask(
            connection, "ShareFetch", 2, **request, topics=[{"topic_id": self._topic_id, "partitions": [partition]}]
        )
        assert answer["error_code"] == 0, answer
        found = [partition for topic in answer["responses"] for partition in topic["partitions"]]
        taken = all(partition["acknowledge_error_code"] == 0 for partition in found)
        if fates and found and taken:
            self._seen.acknowledged(offset for offset, fate in fates.items() if fate == ACCEPT)
        offsets = [
            (offset, run["delivery_count"])
            for partition in found
            for run in partition["acquired_records"]
            for offset in range(run["first_offset"], run["last_offset"] + 1)
        ]
        for offset, count in offsets:
            self._seen.delivered(offset, count, asked)
        if self._is_last:
            return dict.fromkeys((offset for offset, _ in offsets), ACCEPT)
        if offsets:
            append(connection, len(offsets))
        fate = self._randomness.random
        return {offset: ACCEPT if fate() < _ACCEPTED else RELEASE for offset, _ in offsets}


def append(connection: RawConnection, count: int) -> None:
    """One batch of so many records."""
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch(*["record"] * count)}]}]
    answer = ask(connection, "Produce", 12, acks=-1, timeout_ms=10_000, topic_data=data)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer


def prepared(broker: LocalBroker) -> str:
    """The topic with its records, and a group that begins at its start; the topic's id."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic(TOPIC, partitions=1)
    connection = RawConnection(broker.host, broker.port)
    for _ in range(0, RECORDS, TOGETHER):
        append(connection, TOGETHER)
    configs = [{"name": "share.auto.offset.reset", "config_operation": _SET, "value": "earliest"}]
    resource = {"resource_type": _GROUP_RESOURCE, "resource_name": GROUP, "configs": configs}
    changed = ask(connection, "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    assert changed["responses"][0]["error_code"] == 0, changed
    found = ask(connection, "Metadata", 12, topics=[{"topic_id": str(uuid.UUID(int=0)), "name": TOPIC}])
    connection.close()
    return str(found["topics"][0]["topic_id"])


def end(broker: LocalBroker) -> int:
    """How many records there are, those included whose append was not answered."""
    connection = RawConnection(broker.host, broker.port)
    partitions = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
    wanted = [{"name": TOPIC, "partitions": partitions}]
    answer = ask(connection, "ListOffsets", 7, replica_id=-1, isolation_level=0, topics=wanted)
    connection.close()
    return int(answer["topics"][0]["partitions"][0]["offset"])


def lag(broker: LocalBroker) -> int | None:
    """How many records are not done with; None before the broker knows."""
    connection = RawConnection(broker.host, broker.port)
    wanted = [{"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": [0]}]}]
    (group,) = ask(connection, "DescribeShareGroupOffsets", 1, groups=wanted)["groups"]
    connection.close()
    if group["error_code"] in _LOADING:
        return None
    found = group["topics"][0]["partitions"][0]["lag"]
    return None if found < 0 else int(found)


@pytest.mark.timeout(120 + 20 * ROUNDS)
def test_what_was_acknowledged_survives_kill_9_and_all_else_is_delivered(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_SHARE_SEED to repeat")
    seen = Seen()
    with LocalBroker(tmp_path, share_coordinator_state_topic_num_partitions=2) as broker:
        topic_id = prepared(broker)
        members = [Member(broker, f"member-{number}", topic_id, seen).start() for number in range(MEMBERS)]
        try:
            for _ in range(ROUNDS):
                enough = len(seen.accepted) + randomness.randrange(50, 300)
                until(lambda enough=enough: seen.has(enough), lambda: f"{len(seen.accepted)} are accepted")
                broker.kill()
                broker.start()
        finally:
            for member in members:
                member.stop()
        last = Member(broker, "last", topic_id, seen, is_last=True).start()
        try:
            until(lambda: lag(broker) == 0, lambda: f"{lag(broker)} records are left")
            records = end(broker)
        finally:
            last.stop()
    assert seen.wrong == []
    assert sorted(seen.deliveries) == list(range(records)), "each record came at least once"
