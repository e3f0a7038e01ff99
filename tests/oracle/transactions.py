"""Transactional producers, for cases: what a producer would send, with the protocol before and after KIP-890."""

from dataclasses import dataclass
from typing import Any

from tests.oracle.batches import batch
from tests.oracle.script import Answer, Script, error_names

TIMEOUT_MS = 60_000
# The last versions of a producer that adds every partition itself (TV1), and those of one that does not (TV2).
PRODUCE_TV1, PRODUCE_TV2 = 11, 12
END_TV1, END_TV2 = 4, 5
OFFSETS_TV1, OFFSETS_TV2 = 4, 5
# From this version on topics are named by their ids.
OFFSETS_BY_ID = 6
ADD = 3


def init(s: Script, txn: str | None, *, version: int | None = None, **fields: Any) -> Answer:
    """InitProducerId, again as long as the coordinator is busy or loads."""
    request = {"transactional_id": txn, "transaction_timeout_ms": TIMEOUT_MS, **fields}
    busy = {"CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"}
    return s.until(lambda answer: not busy & set(error_names(answer)), "InitProducerId", version, **request)


@dataclass
class Transactional:
    """A producer with a transactional id."""

    s: Script
    txn: str
    producer_id: int
    epoch: int
    sequence: int = 0

    @property
    def named(self) -> dict[str, Any]:
        """The fields that name it in most requests."""
        return {"transactional_id": self.txn, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, topic: str, *partitions: int, **fields: Any) -> Answer:
        """AddPartitionsToTxn, as a client sends it; again while the last transaction is being completed."""
        named = {**self.named, **fields}
        request = {f"v3_and_below_{name}": value for name, value in named.items()}
        request["v3_and_below_topics"] = [{"name": topic, "partitions": list(partitions) or [0]}]
        return self.s.until(_not_busy, "AddPartitionsToTxn", ADD, **request)

    def add_offsets(self, group: str, **fields: Any) -> Answer:
        """AddOffsetsToTxn."""
        return self.s.until(_not_busy, "AddOffsetsToTxn", **{**self.named, "group_id": group, **fields})

    def produce(self, topic: str, value: str, partition: int = 0, version: int = PRODUCE_TV1, **fields: Any) -> Answer:
        """Produce one record in its transaction."""
        producer = (fields.pop("producer_id", self.producer_id), fields.pop("producer_epoch", self.epoch))
        sequence = fields.pop("sequence", self.sequence)
        records = batch(value, producer=producer, sequence=sequence, transactional=True)
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        request = {"transactional_id": self.txn, "acks": -1, "timeout_ms": 30_000, "topic_data": data, **fields}
        answer = self.s.until(_not_busy, "Produce", version, **request)
        if error_names(answer) == ["NONE"]:
            self.sequence = sequence + 1
        return answer

    def commit_offset(
        self, group: str, topic: str, offset: int, partition: int = 0, version: int = OFFSETS_TV1, **fields: Any
    ) -> Answer:
        """TxnOffsetCommit of one partition, by default without a member."""
        named = "topic_id" if version >= OFFSETS_BY_ID else "name"
        topics = [{named: topic, "partitions": [{"partition_index": partition, "committed_offset": offset}]}]
        request = {**self.named, "group_id": group, "topics": topics, **fields}
        return self.s.until(_not_busy, "TxnOffsetCommit", version, **request)

    def end(self, committed: bool, version: int = END_TV1, **fields: Any) -> Answer:
        """EndTxn; from version 5 on the producer goes on with what the answer says."""
        answer = self.s.until(_not_busy, "EndTxn", version, **{**self.named, "committed": committed, **fields})
        if version >= END_TV2 and not answer["error_code"]:
            self.producer_id, self.epoch, self.sequence = answer["producer_id"], answer["producer_epoch"], 0
        return answer

    def again(self) -> Answer:
        """InitProducerId of a new producer with the same id, which fences the others; this one goes on as it was."""
        return init(self.s, self.txn)


def new_producer(s: Script) -> Transactional:
    """A new transactional producer. Not compared."""
    txn = s.new("txn")
    answer = init(s, txn)
    assert error_names(answer) == ["NONE"], answer
    s.transcript.pop()
    return Transactional(s, txn, answer["producer_id"], answer["producer_epoch"])


def ended(s: Script, topic: str, offset: int, partition: int = 0) -> None:
    """Wait until the transaction in a partition is completed: its last stable offset is `offset`. Not compared."""
    s.until(
        lambda answer: bool(answer["topics"][0]["partitions"][0]["offset"] == offset),
        "ListOffsets",
        isolation_level=1,
        topics=[{"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}],
    )
    s.transcript.pop()


def _not_busy(answer: Answer) -> bool:
    # Produce before version 11 gets NOT_ENOUGH_REPLICAS instead, and only Kafka's sentence names the reason.
    return "CONCURRENT_TRANSACTIONS" not in (*error_names(answer), *str(answer).replace("'", " ").split())
