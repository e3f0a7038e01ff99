"""The stored decision, and the topic that keeps it. Pure; everything the sink stores is declared here.

The last record of a key in `TOPIC` says which version of a write is decided, and which transactions hold its rows:

    key    the write's key, UTF-8
    value  {"format": 1, "kind": "stream", "version": 7, "decided_ms": 1763700000000, "prepared": true, "aborted": false,
            "transactions": [["0.1f00ba12c0ffee00", 4001, 1], ...]}
           a transaction: its transactional id without ``pylog-once.<key>.<version>.``, producer id, producer epoch
    no value   a write that is never repeated is done

`prepared`: the brokers never end these transactions by themselves. `aborted` (only for a write that is never repeated): it was given
up, and a task that is late ends its own transaction. A batch that is done keeps its record, without transactions.
`topic_ids` (absent when empty; only for a query): the id of each topic that it has written to, where brokers have ids. A topic with
another id is another topic, and what the query wrote before is not in it.
`revoked` (absent when empty): transactional ids of later versions that another process than their driver aborts; no decision may list
them. If they do not all fit into one record (`protocol.portion`), the others follow when these have ended.
With `revoked`, a key about which nothing is decided has the version -1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from pylog_spark.errors import PylogError
from pylog_spark.options.names import SINK_TOPIC
from pylog_spark.sink.identity import Write, ledger_of

#: Keeps the decisions of writes without a ledger of their own.
TOPIC = SINK_TOPIC
PARTITIONS = 8
#: Small segments and frequent compaction, so that a commit reads no more than a few hundred kB.
TOPIC_CONFIGS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "3600000",
    "compression.type": "producer",
}
FORMAT = 1
#: Most transactions of one decision: their record must fit into a batch of 1 MB.
TRANSACTIONS_MAX = 16_000
#: Most topics whose ids a decision keeps, for the same reason.
TOPIC_IDS_MAX = 300


@dataclass(frozen=True)
class Transaction:
    """One task's transaction, as `RecordWriter.prepare` gives it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    prepared: bool

    @property
    def identity(self) -> tuple[str, int, int]:
        """Transactional id, producer id and producer epoch, as `Client.end_transactions` takes them."""
        return self.transactional_id, self.producer_id, self.producer_epoch


@dataclass(frozen=True)
class Decision:
    """What is decided about `write`: its rows are those of these transactions, and of no others.

    Attributes
    ----------
    write : Write
        The write that is decided.
    transactions : tuple of Transaction
        The transactions to commit. Empty when all of them are committed, or when the write is `aborted`.
    decided_ms : int
        When, by the driver's clock, in milliseconds since 1970.
    aborted : bool
        The write was given up: nothing of it is committed.
    revoked : tuple of str
        Transactional ids that no later decision may list.
    topic_ids : mapping of str to str
        Topic -> id, of topics that this and earlier versions have written to, `TOPIC_IDS_MAX` at most.
    """

    write: Write
    transactions: tuple[Transaction, ...]
    decided_ms: int
    aborted: bool = False
    revoked: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def prepared(self) -> bool:
        """Whether no broker ends its transactions by itself."""
        return all(transaction.prepared for transaction in self.transactions)


def is_decided(stored: Decision | None, write: Write) -> TypeGuard[Decision]:
    """Whether `stored`, the last decision about the write's key, decides its version too."""
    return stored is not None and stored.write.version >= write.version


def topic_of(key: str) -> str:
    """Give the topic that keeps the decisions about `key`. Whoever may write to another one decides nothing about it."""
    ledger = ledger_of(key)
    return TOPIC if ledger is None else f"{TOPIC}.{ledger}"


def partition_of(key: bytes, murmur2: int) -> int:
    """Give the partition of its topic that keeps `key`, whose hash is `murmur2`. The same also after partitions were added."""
    return (murmur2 & 0x7FFFFFFF) % PARTITIONS if key else 0


def revoked_bytes(transactional_id: str) -> int:
    """Give how many bytes of the record's value one entry of `revoked` takes."""
    return len(json.dumps(transactional_id)) + 1


def encode(decision: Decision) -> bytes:
    """Give the record's value."""
    start = len(decision.write.task_prefix)
    transactions = [
        [transaction.transactional_id[start:], transaction.producer_id, transaction.producer_epoch]
        for transaction in decision.transactions
    ]
    document: dict[str, Any] = {
        "format": FORMAT,
        "kind": decision.write.kind,
        "version": decision.write.version,
        "decided_ms": decision.decided_ms,
        "prepared": decision.prepared,
        "aborted": decision.aborted,
        "transactions": transactions,
    }
    if decision.revoked:
        document["revoked"] = list(decision.revoked)
    if decision.topic_ids:
        document["topic_ids"] = dict(decision.topic_ids)
    return json.dumps(document, separators=(",", ":")).encode()


def decode(key: bytes, value: bytes) -> Decision:
    """Read a record.

    Raises
    ------
    PylogError
        When another program or a newer pylog wrote it.
    """
    try:
        document = json.loads(value)
        known = document["format"] == FORMAT
        return _decision(key.decode(), document) if known else _refuse(f"has format {document['format']}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return _refuse(f"cannot be read ({error!r})")


def _decision(key: str, document: Mapping[str, Any]) -> Decision:
    write = Write(document["kind"], key, document["version"])
    transactions = tuple(
        Transaction(write.task_prefix + name, producer_id, epoch, document["prepared"])
        for name, producer_id, epoch in document["transactions"]
    )
    return Decision(
        write,
        transactions,
        document["decided_ms"],
        document["aborted"],
        tuple(document.get("revoked", ())),
        dict(document.get("topic_ids", {})),
    )


def _refuse(what: str) -> Decision:
    raise PylogError(
        "PYLOG_SINK_STATE",
        f"A decision in the topic {TOPIC} {what}; use the version of pylog that wrote it, or find out who else writes there.",
    )
