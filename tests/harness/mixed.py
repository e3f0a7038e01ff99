"""The load of the chaos run: all kinds of clients at once (`load`), and a share group among them."""

import time
from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import IllegalStateException, KafkaException, Message, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pylog_spark.client import AclBinding
from tests.harness.history import DELIVERIES_MAX, History, Outcome, Taken
from tests.harness.load import (
    QUICK,
    STEP_S,
    STOP_DEADLINE_S,
    Client,
    Copier,
    Load,
    Member,
    Observer,
    Reader,
    Sender,
    TransactionalSender,
    records,
)
from tests.harness.security import ADMIN, Way

#: The groups of the members and of the copier.
GROUP, COPIER = "group", "copier"
MEMBERS = ("member-1", "member-2")
#: Who reads everything when the others have ended, and who takes what they have left.
FINAL, LAST_TAKER = "final", "last taker"
#: The share group, and its settings.
TAKERS = "takers"
_OF_TAKERS = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    "share.delivery.count.limit": str(DELIVERIES_MAX),
    "share.record.lock.duration.ms": "15000",
}


class Taker(Client):
    """A member of a share group that accepts all that it is given, and waits for the answer before it wants more.

    What another was given meanwhile it may still have in hand, as librdkafka fetches ahead; it is refused then.
    """

    def __init__(self, name: str, way: Way, history: History, seed: int, topic: str, group: str) -> None:
        super().__init__(name, way, history, seed, 0.05)
        self._topic, self._group = topic, group
        self._consumer: ShareConsumer | None = None

    def step(self) -> None:
        if self._consumer is None:
            own = {"group.id": self._group, "share.acknowledgement.mode": "explicit", "max.poll.records": 50}
            self._consumer = ShareConsumer({**self._settings, "check.crcs": True, **own})
            self._consumer.subscribe([self._topic])
        try:
            taken = [self._take(self._consumer, record) for record in records(self._consumer.poll(0.2))]
            if taken:
                self._note(taken, self._consumer.commit_sync(STEP_S))
        except (KafkaException, IllegalStateException):
            # It may go on, and has to begin anew when it is fatal.
            self.finish()

    def _take(self, consumer: ShareConsumer, message: Message) -> Taken:
        place, count, value = (message.topic(), message.partition()), message.delivery_count(), message.value().decode()
        taken = Taken(self._group, self.name, place, message.offset(), value, count, time.monotonic())
        self._history.taken.append(taken)
        consumer.acknowledge(message)
        return taken

    def _note(self, taken: list[Taken], answers: dict[TopicPartition, KafkaException | None]) -> None:
        errors = {(partition.topic, partition.partition): error for partition, error in answers.items()}
        for record in taken:
            if record.place in errors and errors[record.place] is None:
                record.outcome = Outcome.OK

    def finish(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaException):
                consumer.close()


def rights(mixed: str, source: str, target: str) -> dict[str, list[AclBinding]]:
    """Exactly what the clients of a `MixedLoad`, and who reads when they have ended, must be allowed: by user, which is a client's name."""
    topics = (mixed, source, target)
    given: dict[str, list[tuple[str, str, Sequence[str]]]] = {
        "plain": [("WRITE", "TOPIC", [mixed])],
        "idempotent": [("WRITE", "TOPIC", [mixed])],
        "fill": [("WRITE", "TOPIC", [source])],
        "observer": [("DESCRIBE", "TOPIC", topics)],
        COPIER: [
            ("READ", "TOPIC", [source]),
            ("READ", "GROUP", [COPIER]),
            ("WRITE", "TOPIC", [target]),
            ("WRITE", "TRANSACTIONAL_ID", [COPIER]),
        ],
        # What is no member of its group asks for the group's coordinator all the same.
        **{user: [("READ", "TOPIC", topics), ("DESCRIBE", "GROUP", [user])] for user in ("careful", "careless")},
        FINAL: [("READ", "TOPIC", topics), ("DESCRIBE", "GROUP", [FINAL, GROUP, COPIER])],
        **{
            user: [("WRITE", "TOPIC", [mixed]), ("WRITE", "TRANSACTIONAL_ID", [user])]
            for user in ("transactional-1", "transactional-2")
        },
        **{user: [("READ", "TOPIC", [mixed]), ("READ", "GROUP", [GROUP])] for user in MEMBERS},
        **{
            user: [("READ", "TOPIC", [mixed]), ("READ", "GROUP", [TAKERS])]
            for user in ("taker-1", "taker-2", LAST_TAKER)
        },
    }
    return {
        user: [allowed(user, operation, kind, name) for operation, kind, names in some for name in names]
        for user, some in given.items()
    }


def allowed(user: str, operation: str, kind: str, name: str) -> AclBinding:
    """The ACL that allows a user an operation on one resource."""
    return AclBinding(kind, name, "LITERAL", f"User:{user}", "*", operation, "ALLOW")


class MixedLoad(Load):
    """All kinds of clients, about 200 records a second.

    Topics: `mixed` is written by plain, idempotent and transactional producers and read by a group and a share group; `source` by an
    idempotent one; `target` holds its copy.
    """

    def __init__(
        self, way: Way, history: History, seed: int, mixed: str, source: str, target: str, partitions: int
    ) -> None:
        places = {topic: [(topic, number) for number in range(partitions)] for topic in (mixed, source, target)}
        self.places = [place for some in places.values() for place in some]
        #: Where records are sent all the time; a copier may have to wait for its own transaction to time out.
        self.steady = [*places[mixed], *places[source]]
        own = (way, history, seed)
        clients: list[Client] = [
            Sender("plain", *own, places[mixed], idempotent=False, period_s=0.02),
            Sender("idempotent", *own, places[mixed], idempotent=True, period_s=0.02),
            TransactionalSender("transactional-1", *own, places[mixed], period_s=0.1),
            TransactionalSender("transactional-2", *own, places[mixed], period_s=0.1),
            Sender("fill", *own, places[source], idempotent=True, period_s=0.03),
            Reader("careful", *own, self.places, committed_only=True),
            Reader("careless", *own, self.places, committed_only=False),
            *(Member(name, *own, mixed, GROUP) for name in MEMBERS),
            Taker("taker-1", *own, mixed, TAKERS),
            Taker("taker-2", *own, mixed, TAKERS),
            Observer("observer", *own, self.places),
        ]
        self._way = way
        super().__init__(clients, [Copier(COPIER, *own, source, target)])

    def start(self) -> None:
        """Begin, with a share group that has its settings."""
        settings = [
            ConfigEntry(*setting, incremental_operation=AlterConfigOpType.SET) for setting in _OF_TAKERS.items()
        ]
        group = ConfigResource(ResourceType.GROUP, TAKERS, incremental_configs=settings)
        admin = AdminClient({**self._way.client(ADMIN), **QUICK})
        admin.incremental_alter_configs([group])[group].result(STOP_DEADLINE_S)
        super().start()
