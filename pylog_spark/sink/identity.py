"""Which write this is, and the names of its transactions. Pure.

A write has a *key* (a streaming query's id; `topic/txnAppId` of a batch; else a random one) and a *version* (the number of the
micro-batch; `txnVersion`). Each attempt at a task opens one transaction under a name that is never used again:

    pylog-once.<key>.<version>.<Spark partition>.<job, 8 hex><attempt, 8 hex>[<seconds, hex>]

so a late attempt can neither join nor abort the transaction of another one. `job` is the same for all tasks of one attempt at the whole
write: a driver that gives up its attempt ends the transactions of that attempt and none of another driver's. The key may contain dots. The
seconds are the write's `abandonedAfter`, where it is not the default: so everybody can see from the name how long it may be open.

A write with the option `ledger` has a key that begins with ``<ledger>:``, so that names of its transactions, and the topic with its decisions, are of those who have a
right to that ledger; no other key has a colon before its first slash.

The driver that commits has the transactional id ``pylog-sink.<key>``: the newest driver fences the others. A write that is never repeated
uses ``pylog-once.<key>.driver`` instead: pylog's brokers forget ids that begin with ``pylog-once.`` soon after their last transaction.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from pylog_spark.options.write import ABANDONED_AFTER_MS

TASK_PREFIX = "pylog-once."
DRIVER_PREFIX = "pylog-sink."

#: Kinds of write: a micro-batch of a query; a batch that names itself, so that it can be repeated; any other batch.
STREAM = "stream"
BATCH = "batch"
ONCE = "once"

_JOB_HEX = 8
_ATTEMPT_HEX = 8
_KEY_BYTES = 16
_LEDGER = re.compile(r"([^/:]+):")
_TASK = re.compile(rf"{re.escape(TASK_PREFIX)}(.+)\.(\d+)\.(\d+)\.([0-9a-f]+)", re.DOTALL)


@dataclass(frozen=True)
class Write:
    """Which write a task or a driver works on.

    Attributes
    ----------
    kind : str
        `STREAM`, `BATCH` or `ONCE`.
    key : str
        The same for all versions.
    version : int
        A decision about a version also decides all lower ones.
    """

    kind: str
    key: str
    version: int

    @property
    def name(self) -> str:
        """The write in a sentence."""
        if self.kind == STREAM:
            return f"batch {self.version} of query {self.key}"
        return f"version {self.version} of {self.key!r}" if self.kind == BATCH else "this write"

    @property
    def title(self) -> str:
        """The write where a sentence begins."""
        return self.name[0].upper() + self.name[1:]

    @property
    def driver_id(self) -> str:
        """Transactional id of the driver that commits."""
        return f"{TASK_PREFIX}{self.key}.driver" if self.kind == ONCE else f"{DRIVER_PREFIX}{self.key}"

    @property
    def task_prefix(self) -> str:
        """The beginning of its tasks' transactional ids, which no other version has."""
        return f"{TASK_PREFIX}{self.key}.{self.version}."


@dataclass(frozen=True)
class TaskName:
    """The parts of a task's transactional id."""

    key: str
    version: int
    partition: int
    job: str
    abandoned_after_ms: int


def fresh_job() -> str:
    """Give a name to one attempt at a whole write."""
    return secrets.token_hex(_JOB_HEX // 2)


def in_ledger(key: str, ledger: str | None) -> str:
    """Give the key of a write whose decisions are in `ledger`; None: in the one that is everybody's."""
    return key if ledger is None else f"{ledger}:{key}"


def ledger_of(key: str) -> str | None:
    """Give the ledger that keeps the decisions about `key`; None for the one that is everybody's."""
    found = _LEDGER.match(key)
    return found[1] if found else None


def batch_write(named: tuple[str, int] | None, topic: str | None, ledger: str | None = None) -> Write:
    """Give the write of a batch: the one that `txnAppId` and `txnVersion` name in `topic`, else one that is never repeated.

    As in Delta, where a table keeps them, one name and version may stand once in each topic. No topic's name has a slash.
    """
    if named is None:
        return Write(ONCE, in_ledger(secrets.token_hex(_KEY_BYTES), ledger), 0)
    app_id, version = named
    return Write(BATCH, in_ledger(f"{topic or ''}/{app_id}", ledger), version)


def task_transaction_id(write: Write, partition: int, job: str, abandoned_after_ms: int = ABANDONED_AFTER_MS) -> str:
    """Give a transactional id for one attempt at a task; each call gives a different one."""
    seconds_hex = "" if abandoned_after_ms == ABANDONED_AFTER_MS else f"{-(-abandoned_after_ms // 1000):x}"
    return f"{write.task_prefix}{partition}.{job}{secrets.token_hex(_ATTEMPT_HEX // 2)}{seconds_hex}"


def parse_task_id(transactional_id: str) -> TaskName | None:
    """Read a task's transactional id; None for any other."""
    found = _TASK.fullmatch(transactional_id)
    if found is None:
        return None
    key, version, partition, suffix = found.groups()
    seconds = suffix[_JOB_HEX + _ATTEMPT_HEX :]
    after_ms = int(seconds, 16) * 1000 if seconds else ABANDONED_AFTER_MS
    return TaskName(key, int(version), int(partition), suffix[:_JOB_HEX], after_ms)


def pattern_of(key: str | None) -> str:
    """Give a regular expression (for RE2 and for Python) that matches whole transactional ids of tasks of `key`, or of any key."""
    keys = ".+[.]" if key is None else _literal(f"{key}.")
    return _literal(TASK_PREFIX) + keys + "[0-9]+[.][0-9]+[.][0-9a-f]+"


def write_of(key: str) -> Write:
    """Give a write of `key` with a version before all others, for when only the names of its tasks are known."""
    return Write(ONCE if seems_once(key) else STREAM, key, -1)


def seems_once(key: str) -> bool:
    """Whether a key has the form of those for writes that are never repeated."""
    return re.fullmatch(f"([^/:]+:)?[0-9a-f]{{{2 * _KEY_BYTES}}}", key) is not None


def _literal(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
