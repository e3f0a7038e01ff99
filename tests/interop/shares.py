"""Members of share groups: processes of Kafka's Java client that carry out commands (`tests/peers/java/ShareMember.java`), and
librdkafka's share consumer in this process.
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

from pylog_spark._native import RawConnection
from tests.harness.children import PipedChild
from tests.harness.waiting import until
from tests.peers.jars import classpath
from tests.peers.tools import QUICK, own_classes

RESOURCE_GROUP = 32
_SET = 0
#: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: after a start.
_LOADING = (14, 15)
_DEADLINE_S = 60


class Delivered(NamedTuple):
    """A record as a member got it."""

    partition: int
    offset: int
    count: int
    value: str
    topic: str


class ShareMember:
    """One member. It reads nothing before the first command."""

    def __init__(self, servers: str, group: str, topic: str, log: Path, **settings: object) -> None:
        own = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        logging = "-Dorg.slf4j.simpleLogger.logFile=System.err"
        command = ["java", *QUICK, "-Xmx256m", logging, "-cp", f"{own_classes()}:{classpath('kafka')}", "ShareMember"]
        self._topic = topic
        self._log = open(log, "wb")  # noqa: SIM115 (closed with the process)
        self.process = PipedChild([*command, servers, group, topic, *own], errors=self._log)

    def _answers_to(self, command: str) -> list[list[str]]:
        self.process.say(command)
        answer = []
        while (words := self.process.line(_DEADLINE_S).split()) != ["done"]:
            if words[0] == "failed":
                raise RuntimeError(f"{command}: {' '.join(words)}")
            answer.append(words)
        return answer

    def poll(self, ms: int = 30_000) -> list[Delivered]:
        """Records, or none after `ms`."""
        words = self._answers_to(f"poll {ms}")
        return [Delivered(int(word[1]), int(word[2]), int(word[3]), word[4], self._topic) for word in words]

    def acknowledge(self, how: str, *records: Delivered) -> None:
        """What became of records; it is sent with the next poll or commit."""
        for record in records:
            self._answers_to(f"{how} {record.partition} {record.offset}")

    def commit(self) -> dict[int, str]:
        """Send it now: the outcome by partition, ``ok`` or the name of an exception."""
        return {int(words[1]): words[2] for words in self._answers_to("commit")}

    def close(self) -> None:
        """Say farewell."""
        self._answers_to("close")
        self._end()

    def kill(self) -> None:
        """SIGKILL: no farewell."""
        self.process.kill()
        self._end()

    def _end(self) -> None:
        self.process.wait(_DEADLINE_S)
        self.process.hang_up()
        self._log.close()


class LibrdkafkaMember:
    """One member of librdkafka, with explicit acknowledgements unless its settings say otherwise. Errors are raised."""

    def __init__(self, servers: str, group: str, topic: str, **settings: object) -> None:
        own = {name.replace("_", "."): value for name, value in settings.items()}
        names = {"bootstrap.servers": servers, "group.id": group}
        self.consumer = ShareConsumer({"share.acknowledgement.mode": "explicit", **names, **own})
        self.consumer.subscribe([topic])

    def poll(self, ms: int = 30_000) -> list[Delivered]:
        """Records, or none after `ms`."""
        return [_delivered(message) for message in self.consumer.poll(ms / 1_000)]

    def acknowledge(self, how: str, *records: Delivered) -> None:
        """What became of records; it is sent with the next poll or commit."""
        for record in records:
            self.consumer.acknowledge_offset(
                record.topic, record.partition, record.offset, AcknowledgeType[how.upper()]
            )

    def commit(self) -> dict[int, str]:
        """Send it now: the outcome by partition, ``ok`` or the name of an error."""
        outcome = self.consumer.commit_sync(_DEADLINE_S)
        return {place.partition: error_name(error) for place, error in outcome.items()}

    def close(self) -> None:
        """Send what is still to be sent, and say farewell."""
        self.consumer.close()


def error_name(error: KafkaException | None) -> str:
    """The name of an error's code, ``ok`` without one."""
    return "ok" if error is None else str(error.args[0].name())


def _delivered(message: Message) -> Delivered:
    if message.error() is not None:
        raise KafkaException(message.error())
    partition, offset, count = message.partition(), message.offset(), message.delivery_count()
    return Delivered(partition, offset, count, message.value().decode(), message.topic())


class ShareGroup:
    """A share group on a topic of one partition; its members are killed at the end."""

    def __init__(self, servers: str, name: str, folder: Path) -> None:
        self.servers, self.name, self.topic, self._folder = servers, f"share-{name}", name, folder
        self.members: list[ShareMember] = []

    def __enter__(self) -> "ShareGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            if member.process.running:
                member.kill()

    def start(self, **settings: object) -> ShareMember:
        """Another member."""
        log = self._folder / f"{self.name}-{len(self.members)}.log"
        member = ShareMember(self.servers, self.name, self.topic, log, **settings)
        self.members.append(member)
        return member

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        """The broker's answer to one request over a connection of its own."""
        host, port = self.servers.split(",")[0].split(":")
        answer: dict[str, Any] = json.loads(RawConnection(host, int(port)).call(api, version, json.dumps(fields)))
        return answer

    def configure(self, **settings: object) -> None:
        """Settings of the group itself."""
        configs = [
            {"name": name.replace("_", "."), "config_operation": _SET, "value": str(value)}
            for name, value in settings.items()
        ]
        resource = {"resource_type": RESOURCE_GROUP, "resource_name": self.name, "configs": configs}
        answer = self.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
        assert [response["error_code"] for response in answer["responses"]] == [0], answer

    def describe(self) -> dict[str, Any]:
        """As ShareGroupDescribe gives it."""
        (group,) = self.ask("ShareGroupDescribe", 1, group_ids=[self.name])["groups"]
        return dict(group)

    def offsets(self) -> tuple[int, int]:
        """Start offset and lag of partition 0."""
        wanted = [{"group_id": self.name, "topics": [{"topic_name": self.topic, "partitions": [0]}]}]
        found: dict[str, Any] = {}

        def is_there() -> bool:
            (found["group"],) = self.ask("DescribeShareGroupOffsets", 1, groups=wanted)["groups"]
            return found["group"]["error_code"] not in _LOADING

        until(is_there, "the coordinator has read what the group did")
        (partition,) = found["group"]["topics"][0]["partitions"]
        return partition["start_offset"], partition["lag"]

    def lag(self) -> int:
        """Records of partition 0 that are not done with. Unlike the start offset, which Kafka moves with its next write only, the same
        on all brokers."""
        return self.offsets()[1]
