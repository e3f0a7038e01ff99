"""What the requests of a case are about: topics, groups and transactions that ACLs name ("mine"), others, and what is not there.

Everything here is made by the super user before; it is the same at both brokers.
"""

import base64
import uuid
from typing import Any

from tests.oracle.batches import batch
from tests.oracle.guarded.brokers import PRINCIPALS, SUPER_USER, Acl
from tests.oracle.script import Answer, Script, error_names
from tests.oracle.transactions import PRODUCE_TV1

UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"
INTERNAL = ("__consumer_offsets", "__transaction_state")
#: What the names of groups and transactional ids end in that are there for one kind of request; an ACL that names MINE names these, too.
CONSUMERS, SHARERS, EMPTY, STATES, PREPARED = "-consumers", "-sharers", "-empty", "-states", "-prepared"
#: What the names of topics end in that principals delete, by name and by id.
DELETED = ("-by-name", "-by-id")
_ENDS = {"GROUP": (CONSUMERS, SHARERS, EMPTY, STATES), "TRANSACTIONAL_ID": (PREPARED,), "TOPIC": ()}
_MEMBER, _SHARER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
_LOADING = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


class Names:
    """The names, and who acts (`principal`)."""

    def __init__(self, s: Script) -> None:
        self.principal, self.admin = "", s.main
        self.mine, self.other = s.topic(), s.topic()
        self.missing = self.mine + "-missing"
        self.ids = {topic: s.topic_id(topic) for topic in self.both()}
        self.deleted = self._to_delete(s)
        for topic in self.both():
            s.fill(topic, "x")
            s.quietly("OffsetCommit", 8, group_id=topic, topics=[committed(topic) for topic in self.both()])
        self._members(s)
        self._begin_transactions(s)

    def both(self) -> tuple[str, str]:
        """The name that the ACLs may name, and the other."""
        return self.mine, self.other

    def all(self) -> tuple[str, ...]:
        """Also one of which nothing is there, and internal ones."""
        return self.mine, self.other, self.missing, *INTERNAL

    def to_delete(self) -> list[str]:
        """Topics that who acts may try to delete: by name, and by id."""
        who = self.principal.removeprefix("User:")
        return [f"{self.mine}-{who}{end}" for end in DELETED]

    def told(self, acl: Acl) -> list[Acl]:
        """`acl` with these names for MINE."""
        if "MINE" not in acl.name:
            return [acl]
        ends = ("",) if acl.pattern == "PREFIXED" else ("", *_ENDS[acl.kind])
        fields = {
            name: getattr(acl, name) for name in ("permission", "operation", "kind", "principal", "pattern", "host")
        }
        return [Acl(name=acl.name.replace("MINE", self.mine) + end, **fields) for end in ends]

    def _to_delete(self, s: Script) -> dict[str, str]:
        names = []
        for self.principal in (*PRINCIPALS, SUPER_USER):
            names += self.to_delete()
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        made = s.quietly("CreateTopics", topics=topics)["topics"]
        return {topic["name"]: topic["topic_id"] for topic in made}

    def _members(self, s: Script) -> None:
        """A member in a group of each new kind: of `mine` it reads that topic, of `other` both."""
        for group, topics in ((self.mine, [self.mine]), (self.other, [*self.both()])):
            joining = {"member_epoch": 0, "subscribed_topic_names": topics}
            reading = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
            s.until(
                _is_loaded,
                "ConsumerGroupHeartbeat",
                1,
                group_id=group + CONSUMERS,
                member_id=_MEMBER,
                **joining,
                **reading,
            )
            s.transcript.pop()
            # So that the group's partitions are there at both, whoever reads.
            there = [
                {"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}
                for topic in self.both()
            ]
            s.until_good("AlterShareGroupOffsets", 0, group_id=group + SHARERS, topics=there)
            s.transcript.pop()
            s.until(_is_loaded, "ShareGroupHeartbeat", 1, group_id=group + SHARERS, member_id=_SHARER, **joining)
            s.transcript.pop()
            s.until_good("FindCoordinator", 6, key_type=2, coordinator_keys=[self.share_key(group, topics[0])])
            s.transcript.pop()

    def _begin_transactions(self, s: Script) -> None:
        """A transaction of `mine` with records in both topics and an offset; `other` has begun none."""
        self.producers: dict[str, tuple[int, int]] = {}
        for name in self.both():
            answer = s.until_good("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=600_000)
            s.transcript.pop()
            self.producers[name] = answer["producer_id"], answer["producer_epoch"]
        for api, version, fields in (
            ("AddPartitionsToTxn", 3, self.adds(self.mine, *self.both())),
            ("AddOffsetsToTxn", 3, {**self.producer(self.mine), "group_id": self.mine}),
            (
                "TxnOffsetCommit",
                3,
                {**self.producer(self.mine), "group_id": self.mine, "topics": [committed(self.mine)]},
            ),
            *(("Produce", PRODUCE_TV1, self.in_transaction(self.mine, topic)) for topic in self.both()),
        ):
            s.quietly(api, version, **fields)

    def share_key(self, group: str, topic: str) -> str:
        """The key of the state of a share partition, with the topic's id as Kafka writes it."""
        written = base64.urlsafe_b64encode(uuid.UUID(self.ids[topic]).bytes).decode().rstrip("=")
        return f"{group}{SHARERS}:{written}:0"

    def producer(self, transactional_id: str) -> dict[str, Any]:
        """The fields that name a producer in most requests."""
        producer_id, epoch = self.producers[transactional_id]
        return {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch}

    def adds(self, transactional_id: str, *topics: str) -> dict[str, Any]:
        """The fields of AddPartitionsToTxn."""
        fields = {f"v3_and_below_{name}": value for name, value in self.producer(transactional_id).items()}
        return {**fields, "v3_and_below_topics": [{"name": topic, "partitions": [0]} for topic in topics]}

    def in_transaction(self, transactional_id: str, topic: str) -> dict[str, Any]:
        """The fields of Produce: always the same batch, so that it is written once."""
        records = batch("in a transaction", producer=self.producers[transactional_id], sequence=0, transactional=True)
        return {**produced(topic, records), "transactional_id": transactional_id, "acks": -1}


def _is_loaded(answer: Answer) -> bool:
    return not _LOADING & set(error_names(answer))


def committed(topic: str, offset: int = 0, named: str = "name") -> dict[str, Any]:
    """A topic of a commit."""
    return {named: topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}


def produced(topic: str, records: str, named: str = "name") -> dict[str, Any]:
    """The fields of Produce."""
    data = [{named: topic, "partition_data": [{"index": 0, "records": records}]}]
    return {"acks": 1, "timeout_ms": 30_000, "topic_data": data}


def fetched(topic: str, named: str = "topic", most_bytes: int = 1) -> dict[str, Any]:
    """The fields of Fetch, by default for the first batch."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": most_bytes}
    topics = [{named: topic, "partitions": [partition]}]
    return {"max_wait_ms": 0, "min_bytes": 0, "topics": topics}
