"""One scripted sequence of raw requests to one broker: what a case is written with.

A case is a function of a `Script`. It is run against Apache Kafka and against pylog; every answer is kept, and the two lists
of answers are compared. What a case expects (`says`) is asked of Apache Kafka only: a case whose name claims what Kafka
does not do fails as well as one where pylog differs.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pylog_spark._native import NativeError, RawConnection
from tests.harness import waiting
from tests.oracle.batches import batch
from tests.oracle.errors import NAMES
from tests.oracle.normal import Names, normal

TIMEOUT_MS = 30_000
# A broker on a busy machine may be silent for longer than requests ask it to wait.
ANSWERED_MS = 30_000
# How long `until` asks, and how often.
UNTIL_S, ASK_AGAIN_S = 60, 0.002
ACKS_ALL = -1
# The version used when a case names none: the newest that both brokers advertise and this codec knows.
NEWEST = {
    "Produce": 12, "Fetch": 12, "ListOffsets": 10, "Metadata": 12, "OffsetCommit": 9, "OffsetFetch": 9,
    "FindCoordinator": 6, "JoinGroup": 9, "Heartbeat": 4, "LeaveGroup": 5, "SyncGroup": 5, "DescribeGroups": 6,
    "ListGroups": 5, "ApiVersions": 4, "CreateTopics": 7, "DeleteTopics": 6, "DeleteRecords": 2, "InitProducerId": 5,
    "OffsetForLeaderEpoch": 4, "AddPartitionsToTxn": 3, "AddOffsetsToTxn": 4, "EndTxn": 5, "TxnOffsetCommit": 5,
    "DescribeConfigs": 4, "AlterConfigs": 2, "CreatePartitions": 3, "DeleteGroups": 2, "IncrementalAlterConfigs": 1,
    "OffsetDelete": 0, "DescribeCluster": 2, "DescribeProducers": 0, "DescribeTransactions": 0, "ListTransactions": 1,
    "ConsumerGroupHeartbeat": 1, "ConsumerGroupDescribe": 1, "DescribeTopicPartitions": 0, "DescribeLogDirs": 4,
}  # fmt: skip

Answer = dict[str, Any]


@dataclass(frozen=True)
class Entrance:
    """A way into a broker other than that of all cases: another listener, with the settings of who logs in there, called `name`."""

    servers: str
    settings: Mapping[str, str]
    name: str


class Line:
    """One more connection of a script, for requests that wait while others are sent, or that another principal sends."""

    def __init__(self, script: "Script", client_id: str, entrance: Entrance | None = None) -> None:
        self._script = script
        self._client_id = client_id
        self._by = f" by {entrance.name}" if entrance else ""
        host, port = entrance.servers.rsplit(":", 1) if entrance else (script.host, script.port)
        self._raw = RawConnection(host, int(port), ANSWERED_MS, entrance.settings if entrance else None)
        self._sent: list[str] = []

    def call(self, api: str, version: int | None = None, **fields: Any) -> Answer:
        """Send a request, keep and return its answer."""
        self.send(api, version, **fields)
        return self.receive()

    def send(self, api: str, version: int | None = None, *, answered: bool = True, **fields: Any) -> None:
        """Send a request whose answer `receive` fetches."""
        number = NEWEST[api] if version is None else version
        self._raw.send(api, number, json.dumps(fields), self._client_id, answered=answered)
        if answered:
            self._sent.append(f"{api} v{number}{self._by}")

    def receive(self) -> Answer:
        """The answer to the oldest request sent; a closed connection is an answer, too."""
        asked = self._sent.pop(0)
        try:
            answer = json.loads(self._raw.receive())
        except NativeError as error:
            answer = {"connection": error.args[0]}
        return self._script.keep(asked, answer)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


class Script:
    """A case's hands: requests to one broker, with names that are new in this case."""

    def __init__(self, servers: str, prefix: str, is_kafka: bool) -> None:
        self.host, port = servers.rsplit(":", 1)
        self.port = int(port)
        self.is_kafka = is_kafka
        self._prefix = prefix
        self._made: dict[str, int] = {}
        self._names = Names()
        self._lines: list[Line] = []
        self._listed: tuple[str, ...] = ()
        self.transcript: list[tuple[str, Any]] = []
        self.last: Answer = {}
        self.main = self.line()

    def line(self, client_id: str = "oracle", entrance: Entrance | None = None) -> Line:
        """Another connection."""
        line = Line(self, client_id, entrance)
        self._lines.append(line)
        return line

    def enter(self, entrance: Entrance) -> None:
        """Go on as who comes in there: the requests that follow are sent over a connection of their own."""
        self.main = self.line(entrance=entrance)

    def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            with suppress(NativeError):
                line.close()

    def keep(self, asked: str, answer: Answer) -> Answer:
        """Put an answer on the list."""
        self.last = answer
        kept = _only(answer, self._prefix + "-", self._listed) if self._listed else answer
        self.transcript.append((asked, normal(kept, self._names)))
        return answer

    def call(self, api: str, version: int | None = None, **fields: Any) -> Answer:
        """Send a request, keep and return its answer."""
        return self.main.call(api, version, **fields)

    def listed(self, names: str, api: str, version: int | None = None, **fields: Any) -> None:
        """As `call`, for a list that has elements of other cases, which come and go: kept is what this case's field `names` names."""
        self._listed = (names,)
        try:
            self.main.call(api, version, **fields)
        finally:
            self._listed = ()

    def quietly(self, api: str, version: int | None = None, **fields: Any) -> Answer:
        """As `call`, for what prepares a case: the answer is not compared, and must not hold an error."""
        answer = self.main.call(api, version, **fields)
        self.transcript.pop()
        assert error_names(answer) in ([], ["NONE"]), f"{api} to prepare the case failed: {answer}"
        return answer

    def until(self, done: Callable[[Answer], bool], api: str, version: int | None = None, **fields: Any) -> Answer:
        """Ask again and again until the answer is `done`; only the last answer is kept. For what a broker does soon."""
        answers: list[Answer] = []

        def answered() -> bool:
            if answers:
                self.transcript.pop()
            answers[:] = [self.main.call(api, version, **fields)]
            return done(answers[0])

        waiting.until(answered, lambda: f"{api} answers as it should, at last: {answers}", UNTIL_S, ASK_AGAIN_S)
        return answers[0]

    def until_good(self, api: str, version: int | None = None, **fields: Any) -> Answer:
        """As `until`, for an answer without errors."""
        return self.until(lambda answer: error_names(answer) == ["NONE"], api, version, **fields)

    def says(self, *errors: str) -> None:
        """The last answer holds exactly these errors (each once, in any order); NONE when it holds none."""
        if self.is_kafka:
            assert error_names(self.last) == sorted(errors), f"Apache Kafka says otherwise: {self.last}"

    def holds(self, **values: Any) -> None:
        """The last answer holds, somewhere, a field of each name with this value."""
        if self.is_kafka:
            for name, value in values.items():
                assert value in list(_values(self.last, name)), f"Apache Kafka's {name} is not {value!r}: {self.last}"

    def without(self, *fields: str) -> None:
        """Leave `fields` of the last answer out of the comparison; another case compares them."""
        asked, answer = self.transcript.pop()
        self.transcript.append((asked, _without(answer, fields)))

    def only_mine(self) -> None:
        """Leave out of the last answer what lists elements of other cases: a group or transactional id not named here."""
        asked, answer = self.transcript.pop()
        self.transcript.append((asked, _only(answer, self._prefix + "-", ("group_id", "transactional_id"))))

    def new(self, kind: str) -> str:
        """A name that no other case uses."""
        number = self._made[kind] = self._made.get(kind, 0) + 1
        return f"{self._prefix}-{kind}{number}"

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic; settings with underscores."""
        name = self.new("topic")
        given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": given}
        self.quietly("CreateTopics", topics=[topic])
        # A broker that decides in one place and serves in another may need a moment to lead the partitions.
        wanted = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        self.until_good("ListOffsets", topics=[{"name": name, "partitions": wanted}])
        self.transcript.pop()
        return name

    def topic_id(self, topic: str) -> str:
        """The id of a topic."""
        answer = self.quietly("Metadata", **_metadata_of(topic))
        return str(answer["topics"][0]["topic_id"])

    def producer(self) -> tuple[int, int]:
        """A new idempotent producer: (id, epoch)."""
        answer = self.quietly("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
        return answer["producer_id"], answer["producer_epoch"]

    def produce(
        self, topic: str, records: str | None, partition: int = 0, *, version: int | None = None, **fields: Any
    ) -> Answer:
        """Produce one batch (see `batches.batch`) with acks=all."""
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        request = {"acks": ACKS_ALL, "timeout_ms": TIMEOUT_MS, "topic_data": data, **fields}
        return self.call("Produce", version, **request)

    def fill(self, topic: str, *values: str, partition: int = 0, step_ms: int = 0) -> None:
        """Produce each value as a batch of its own, not compared; the i-th has a timestamp i * `step_ms` later."""
        for number, value in enumerate(values):
            self.produce(topic, batch(value, time_ms=1_700_000_000_000 + number * step_ms), partition)
            assert error_names(self.last) == ["NONE"], self.last
            self.transcript.pop()

    def fetch(
        self, topic: str, offset: int, partition: int = 0, *, version: int | None = None, **fields: Any
    ) -> Answer:
        """Fetch from one partition. Fields of the partition and of the request are distinguished by their names."""
        partition_names = {"current_leader_epoch", "last_fetched_epoch", "log_start_offset", "partition_max_bytes"}
        inner = {name: fields.pop(name) for name in partition_names & fields.keys()}
        wanted = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **inner}
        topics = [{"topic": topic, "partitions": [wanted]}]
        request = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50 << 20, "topics": topics, **fields}
        return self.call("Fetch", version, **request)

    def list_offset(
        self, topic: str, timestamp: int, partition: int = 0, *, version: int | None = None, **fields: Any
    ) -> Answer:
        """ListOffsets of one partition."""
        inner = {name: fields.pop(name) for name in {"current_leader_epoch"} & fields.keys()}
        wanted = {"partition_index": partition, "timestamp": timestamp, **inner}
        return self.call("ListOffsets", version, topics=[{"name": topic, "partitions": [wanted]}], **fields)


def _metadata_of(topic: str) -> dict[str, Any]:
    return {"topics": [{"name": topic}], "allow_auto_topic_creation": False}


def _without(answer: Any, fields: tuple[str, ...]) -> Any:
    if isinstance(answer, dict):
        return {name: _without(value, fields) for name, value in answer.items() if name not in fields}
    return [_without(item, fields) for item in answer] if isinstance(answer, list) else answer


def _only(answer: Any, prefix: str, names: tuple[str, ...]) -> Any:
    mine = [name for name in names if isinstance(answer, dict) and name in answer]
    if mine:
        return answer if str(answer[mine[0]]).startswith(prefix) else None
    if isinstance(answer, dict):
        return {name: _only(value, prefix, names) for name, value in answer.items()}
    if isinstance(answer, list):
        return [item for item in (_only(item, prefix, names) for item in answer) if item is not None]
    return answer


def _values(answer: Any, name: str) -> Any:
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key == name:
                yield value
            yield from _values(value, name)
    elif isinstance(answer, list):
        for item in answer:
            yield from _values(item, name)


def error_names(answer: Answer) -> list[str]:
    """The errors in an answer, sorted; NONE alone when there are error fields and all are 0."""
    codes = [*_values(answer, "error_code"), *_values(answer, "partition_error_code")]
    wrong = [NAMES[code] for code in codes if code]
    return sorted(wrong) if wrong else ["NONE"] if codes else []
