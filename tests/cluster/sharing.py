"""Members of share groups on brokers that die: each reads one partition, wherever it is led, and says what became of the records.

Not Kafka's client: what was sent and what was answered when is what the tests judge by.
"""

import base64
import json
import threading
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pylog_spark._native import NativeError, RawConnection
from pylog_spark.client import Admin
from pylog_spark.testing import LocalBroker, LocalCluster
from tests.harness.waiting import pause

ACCEPT, RELEASE = 1, 2
GROUP_RESOURCE, SET = 32, 0
#: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
LOADING = (14, 15, 16)
NOT_LEADER = 6
OPENS = 0
_PAUSE_S = 0.02

Place = tuple[int, int]


def ask(connection: RawConnection, api: str, version: int, **fields: Any) -> dict[str, Any]:
    """One request."""
    answer: dict[str, Any] = json.loads(connection.call(api, version, json.dumps(fields)))
    return answer


def connect(broker: LocalBroker) -> RawConnection:
    """To a broker; one that stands still is left soon."""
    return RawConnection(broker.host, broker.port, 10_000)


def once(broker: LocalBroker, api: str, version: int, **fields: Any) -> dict[str, Any]:
    """One request over a connection of its own."""
    connection = connect(broker)
    try:
        return ask(connection, api, version, **fields)
    finally:
        connection.close()


def topic_id(cluster: LocalCluster, topic: str) -> str:
    """As requests name it."""
    nameless = [{"topic_id": str(uuid.UUID(int=0)), "name": topic}]
    return str(once(cluster.brokers[0], "Metadata", 12, topics=nameless)["topics"][0]["topic_id"])


def state_key(group: str, topic_id: str, partition: int) -> str:
    """Where `__share_group_state` has what the group did with the partition."""
    return f"{group}:{base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip('=')}:{partition}"


def move_leader(cluster: LocalCluster, topic: str, partition: int) -> LocalBroker:
    """Let another of its replicas lead the partition; returns that one."""
    (found,) = [described for described in cluster.describe_topic(topic) if described.partition == partition]
    others = [replica for replica in found.replicas if replica != found.leader]
    with Admin(cluster.bootstrap_servers) as admin:
        admin.reassign({(topic, partition): [*others, found.leader]})
        cluster.wait_for(lambda: not admin.reassignments(), "the partition is where it is wanted")
        admin.elect_leaders()
    return cluster.wait_for_leader(topic, partition, other_than=cluster.broker(found.leader))


def configure(broker: LocalBroker, group: str, **settings: object) -> None:
    """Settings of a group, set at this broker."""
    configs = [
        {"name": name.replace("_", "."), "config_operation": SET, "value": str(text)} for name, text in settings.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}
    answer = once(broker, "IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    assert answer["responses"][0]["error_code"] == 0, answer


def shown(broker: LocalBroker, group: str, name: str) -> str:
    """A setting of a group as this broker knows it."""
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configuration_keys": None}
    answer = once(broker, "DescribeConfigs", 4, resources=[resource])["results"][0]
    return next(str(config["value"]) for config in answer["configs"] if config["name"] == name)


def join(cluster: LocalCluster, group: str, member: str, topic: str) -> None:
    """Be a member, as the group's coordinator says."""

    def joined() -> bool:
        running = next(broker for broker in cluster.brokers if broker.running)
        found = once(running, "FindCoordinator", 6, key_type=0, coordinator_keys=[group])["coordinators"][0]
        if found["error_code"] in LOADING:
            return False
        said = {"group_id": group, "member_id": member, "member_epoch": 0, "subscribed_topic_names": [topic]}
        answer = once(cluster.broker(found["node_id"]), "ShareGroupHeartbeat", 1, **said)
        assert answer["error_code"] in (0, *LOADING), answer
        return bool(answer["error_code"] == 0)

    cluster.wait_for(joined, f"{member} is a member of {group}")


class Session:
    """A share session of one member with the leader of one partition."""

    def __init__(self, broker: LocalBroker, group: str, member: str, topic_id: str, partition: int) -> None:
        self.connection, self._as, self._epoch = connect(broker), {"group_id": group, "member_id": member}, OPENS
        self._place = (topic_id, partition)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def fetch(self, fates: dict[int, int] | None = None, wait_ms: int = 50, most: int = 10) -> dict[str, Any]:
        """What the partition has for the member, and the outcome of what it says."""
        limits = {"max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": most, "batch_size": most}
        answer = self._send("ShareFetch", fates or {}, **limits)
        assert answer["error_code"] == 0, answer
        found = [partition for topic in answer["responses"] for partition in topic["partitions"]]
        return found[0] if found else {"error_code": 0, "acknowledge_error_code": 0, "acquired_records": []}

    def acknowledge(self, fates: dict[int, int]) -> dict[str, Any]:
        """The outcome of what it says."""
        answer = self._send("ShareAcknowledge", fates)
        assert answer["error_code"] == 0, answer
        return dict(answer["responses"][0]["partitions"][0])

    def _send(self, api: str, fates: dict[int, int], **more: Any) -> dict[str, Any]:
        batches = [
            {"first_offset": offset, "last_offset": offset, "acknowledge_types": [fate]}
            for offset, fate in sorted(fates.items())
        ]
        topic, number = self._place
        asked = {"partition_index": number, "acknowledgement_batches": batches}
        topics = [{"topic_id": topic, "partitions": [asked]}]
        answer = ask(self.connection, api, 2, **self._as, share_session_epoch=self._epoch, **more, topics=topics)
        self._epoch += 1
        return answer


def offsets(found: dict[str, Any]) -> dict[int, int]:
    """The records that were acquired: how often each was delivered."""
    return {
        offset: run["delivery_count"]
        for run in found["acquired_records"]
        for offset in range(run["first_offset"], run["last_offset"] + 1)
    }


@dataclass
class Seen:
    """What all members saw; `wrong` is what must not be."""

    #: What was said to be accepted; who said it may have got no answer.
    said: set[Place] = field(default_factory=set)
    #: When the answer was there that says so.
    accepted: dict[Place, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def delivered(self, place: Place, asked: float) -> None:
        """A record came in the answer to what was asked at `asked`."""
        with self.lock:
            if self.accepted.get(place, asked) < asked:
                self.wrong.append(f"{place} was accepted and came again")

    def say(self, places: Iterable[Place]) -> None:
        """Somebody is about to accept them."""
        with self.lock:
            self.said.update(places)

    def answered(self, places: Iterable[Place]) -> None:
        """The answer is there that they are accepted."""
        with self.lock:
            self.accepted.update(dict.fromkeys(places, time.perf_counter()))

    def count(self, partition: int) -> int:
        """How many of a partition are accepted; fails at what is wrong."""
        assert self.wrong == []
        with self.lock:
            return sum(number == partition for number, _ in self.accepted)


class Member:
    """Reads a partition and accepts what it gets, over and over, with a new session where and when the partition is led anew."""

    def __init__(self, cluster: LocalCluster, group: str, topic: str, partition: int, name: str, seen: Seen) -> None:
        self._cluster, self._group, self._topic, self._partition = cluster, group, topic, partition
        self._name, self._seen, self._topic_id = name, seen, topic_id(cluster, topic)
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
        while not self._stopped.is_set():
            try:
                # The broker is dead, or dies, or does not lead any more.
                with suppress(NativeError, StopIteration):
                    self._session()
            except Exception as error:  # noqa: BLE001  # the test reports it
                self._seen.wrong.append(f"{self._name}: {error!r}")
                return
            pause(self._stopped, _PAUSE_S)

    def _session(self) -> None:
        leader = self._cluster.leader(self._topic, self._partition)
        if leader is None or not leader.running:
            return
        join(self._cluster, self._group, self._name, self._topic)
        with Session(leader, self._group, self._name, self._topic_id, self._partition) as session:
            fates: dict[int, int] = {}
            while not self._stopped.is_set():
                self._seen.say((self._partition, offset) for offset in fates)
                asked = time.perf_counter()
                found = session.fetch(fates)
                if fates and found["acknowledge_error_code"] == 0:
                    self._seen.answered((self._partition, offset) for offset in fates)
                if NOT_LEADER in (found["error_code"], found["acknowledge_error_code"]):
                    return
                came = offsets(found)
                for offset in came:
                    self._seen.delivered((self._partition, offset), asked)
                if found["acknowledge_error_code"] in LOADING:
                    # Said again with what came.
                    came = {**came, **fates}
                fates = dict.fromkeys(came, ACCEPT)
