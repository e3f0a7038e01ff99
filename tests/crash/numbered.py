"""Numbered records for a broker that dies again and again, and the oracle that judges what the log holds afterwards.

Two kinds of producer, each with partitions of its own, both librdkafka:

- `idempotent`: lives through all rounds and retries until everything is acknowledged. The log must hold each record exactly
  once, in order, without a gap.
- `plain`: never retries. Acknowledged records must be there, once; records without an answer may be there, once; the
  order is the order of sending.

Every value follows from its number alone, so a torn or mixed-up value cannot pass.
"""

import hashlib
import json
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.harness.waiting import during, until

BURST = 300
QUEUED_MAX = 2_000
_DEADLINE_S = 60
_RECONNECT = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20, "retry.backoff.ms": 5, "log_level": 0}


def value_of(topic: str, partition: int, number: int) -> bytes:
    """The value of record `number`: 20 to 1,500 bytes that follow from it."""
    seed = hashlib.sha256(f"{topic}/{partition}/{number}".encode()).digest()
    size = 20 + int.from_bytes(seed[:2], "big") % 1_480
    return b"%012d:" % number + (seed * (size // len(seed) + 1))[: size - 13]


@dataclass
class Partition:
    """What was sent to one partition, what was acknowledged, and what was read back so far."""

    topic: str
    number: int
    exact: bool
    sent: int = 0
    acknowledged: set[int] = field(default_factory=set)
    acknowledged_ever: int = 0
    cut_off: int = 0
    last_read: int = -1
    next_offset: int = 0

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """Delivery report of one record; comes only while its producer is polled or flushed."""
        if error is not None:
            self.cut_off += error.code() in (KafkaError._TRANSPORT, KafkaError._PURGE_INFLIGHT)
        else:
            self.acknowledged.add(int(message.value()[:12]))
            self.acknowledged_ever += 1

    def burst(self) -> list[dict[str, bytes]]:
        """The next BURST records to send."""
        first, self.sent = self.sent, self.sent + BURST
        return [{"value": value_of(self.topic, self.number, number)} for number in range(first, self.sent)]

    def judge(self, messages: list[Message]) -> None:
        """Check the records that came since the last judgement, and that nothing acknowledged since then is missing."""
        read = set()
        for message in messages:
            assert message.offset() == self.next_offset, f"{self.where()}: offset {message.offset()} came instead"
            number = int(message.value()[:12])
            wanted = value_of(self.topic, self.number, number)
            assert message.value() == wanted, f"{self.where()}: a torn or foreign value"
            follows = number == self.last_read + 1 if self.exact else number > self.last_read
            assert follows, f"{self.where()}: record {number} came after {self.last_read}"
            read.add(number)
            self.last_read = number
            self.next_offset += 1
        # An idempotent record may be read first and acknowledged later, when its retry was recognised.
        lost = {number for number in self.acknowledged - read if not self.exact or number > self.last_read}
        assert not lost, f"{self.where()}: {len(lost)} acknowledged records are lost, the first is {min(lost)}"
        self.acknowledged.clear()

    def where(self) -> str:
        """Place for a sentence."""
        return f"{self.topic}-{self.number} at offset {self.next_offset}"


class NumberedRecords:
    """Both producers over `servers`. Call `push` in a loop; the broker may die at any time between and during calls."""

    def __init__(self, servers: str, partitions: int) -> None:
        self._servers = servers
        self.idempotent = [Partition("idempotent", number, exact=True) for number in range(partitions)]
        self.plain = [Partition("plain", number, exact=False) for number in range(partitions)]
        common = {
            "bootstrap.servers": servers,
            "acks": "all",
            "linger.ms": 1,
            "message.timeout.ms": 120_000,
            **_RECONNECT,
        }
        self._exact = Producer({**common, "enable.idempotence": True, "compression.type": "lz4"})
        # Records of the plain producer that were sent and not answered; None until librdkafka says it anew.
        self._loose_in_flight: int | None = None
        statistics = {"statistics.interval.ms": 10, "stats_cb": self._count_in_flight}
        self._loose = Producer({**common, **statistics, "retries": 0})

    @property
    def acknowledged(self) -> int:
        """Records acknowledged since the start, of both producers."""
        return sum(partition.acknowledged_ever for partition in (*self.idempotent, *self.plain))

    @property
    def cut_off(self) -> int:
        """Plain records that were sent to a broker that died before it answered."""
        return sum(partition.cut_off for partition in self.plain)

    def push(self, poll_s: float) -> None:
        """Send a burst to every partition with room in its queue, and take delivery reports for `poll_s`."""
        bursts = []
        for producer, partitions in ((self._exact, self.idempotent), (self._loose, self.plain)):
            if len(producer) < QUEUED_MAX:
                bursts += [(producer, partition, partition.burst()) for partition in partitions]
        # The values are made before: the records reach the broker as fast as librdkafka can send them.
        for producer, partition, messages in bursts:
            queued = producer.produce_batch(
                partition.topic, messages, partition.number, on_delivery=partition.delivered
            )
            assert queued == len(messages)
        self._loose.poll(poll_s)
        self._exact.poll(0)

    def unanswered(self, poll_s: float) -> bool:
        """Whether plain records were sent and wait for an answer, after the reports that come within `poll_s` were taken.

        Records that librdkafka still holds back, as it does while it connects again, do not count.
        """
        for _ in during(poll_s):
            if not len(self._loose):
                break
            self._loose.poll(poll_s / 10)
        self._loose_in_flight = None
        until(self._knows_what_is_in_flight, "librdkafka gives statistics", _DEADLINE_S)
        assert self._loose_in_flight is not None
        return self._loose_in_flight > 0

    def _knows_what_is_in_flight(self) -> bool:
        self._loose.poll(0.01)
        return self._loose_in_flight is not None

    def _count_in_flight(self, statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        self._loose_in_flight = sum(broker["waitresp_msg_cnt"] for broker in brokers)

    def broker_died(self) -> None:
        """Give up the plain records in flight: whether they are in the log is unknown."""
        self._loose.purge()
        assert self._loose.flush(_DEADLINE_S) == 0

    def finish(self) -> None:
        """Wait until the idempotent producer's last record is acknowledged."""
        unsent = self._exact.flush(_DEADLINE_S)
        assert unsent == 0, (
            f"{unsent} idempotent records are still not acknowledged {_DEADLINE_S} s after the last restart"
        )
        assert all(partition.sent == partition.acknowledged_ever for partition in self.idempotent)

    def _end(self, consumer: Consumer, place: TopicPartition) -> int:
        """Where a partition ends. Raises AssertionError that says what the broker says of the topic."""
        try:
            _, end = consumer.get_watermark_offsets(place, timeout=_DEADLINE_S)
        except KafkaException as error:
            topic = consumer.list_topics(place.topic, timeout=_DEADLINE_S).topics[place.topic]
            partitions = {number: (each.leader, each.error) for number, each in topic.partitions.items()}
            raise AssertionError(f"{place}: {error}; the topic is said to be {topic.error}, {partitions}") from error
        return int(end)

    def check(self) -> None:
        """Read what is new in every partition and judge it. Raises AssertionError."""
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": "crash",
            "enable.auto.commit": False,
            "check.crcs": True,
            **_RECONNECT,
        }
        consumer = Consumer({**settings, "fetch.wait.max.ms": 10, "isolation.level": "read_uncommitted"})
        try:
            for partition in (*self.idempotent, *self.plain):
                place = TopicPartition(partition.topic, partition.number, partition.next_offset)
                end = self._end(consumer, place)
                messages: list[Message] = []
                consumer.assign([place])
                while len(messages) < end - place.offset:
                    got = consumer.consume(end - place.offset - len(messages), timeout=_DEADLINE_S)
                    assert got, f"{partition.where()}: nothing came, and the end is {end}"
                    assert [message.error() for message in got if message.error()] == []
                    messages += got
                partition.judge(messages)
        finally:
            consumer.close()
