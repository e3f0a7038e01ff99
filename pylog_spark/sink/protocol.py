"""What a driver does next: pure functions of the stored decision, the tasks' messages and the version.

What holds, whichever process crashes at whatever point:

- A version is decided once: the first decision that is stored about it stands, and its list of transactions is final.
- The transactions of that list are only ever committed. Any other transaction of the same key is aborted in one of three cases: the
  decision about its version is stored; its own driver gives it up and knows, having fenced the others, that no decision lists it; or
  another process ends it, after the one driver that is not fenced has stored that it is revoked: no decision may list it any more.
- A revocation stays stored until the transaction is ended or its version is decided, and a driver lists only transactions that are
  still open. So a driver that comes late finds either the revocation or the transaction ended.
- Therefore a row is in the log, committed, if and only if its transaction is in the list of its version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pylog_spark.errors import PylogError
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink.decision import TRANSACTIONS_MAX, Decision, Transaction, is_decided, revoked_bytes, topic_of
from pylog_spark.sink.identity import BATCH, ONCE, STREAM, Write, parse_task_id
from pylog_spark.sink.topics import checked

#: State of a transaction that has not ended.
OPEN = "Ongoing"
#: Time-out of a transaction that no broker ends, as brokers describe one that is prepared (KIP-939).
_NEVER_MS = 2**31 - 1
#: A transaction that can time out must have at least this left, or a tenth of its time-out, when it is decided.
MARGIN_MS = 30_000
#: How old a decided, unfinished batch must be before another driver finishes it: its own driver is then dead, or has waited for long.
HELP_AFTER_MS = 300_000
#: Most bytes of revocations in one record, which must fit into a batch of 1 MB with all else that a decision says.
REVOKED_BYTES_MAX = 50_000


@dataclass(frozen=True)
class Outcome:
    """What one task did, as far as the protocol is concerned: a part of its commit message.

    Attributes
    ----------
    write : Write
        The write that it worked on.
    job : str
        Which attempt at the whole write it belongs to.
    transaction : Transaction or None
        None when the task had no row, or skipped its rows.
    skipped : bool
        It found the version decided and wrote nothing.
    topic_ids : mapping of str to str
        Only for a query: topic -> id, of the topics that the query has written to, as far as the task knows.
    """

    write: Write
    job: str
    transaction: Transaction | None
    skipped: bool
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Nothing:
    """No row was written and none is waiting."""


@dataclass(frozen=True)
class Finish:
    """The version is decided already: carry out what `decision` says, completely."""

    decision: Decision


@dataclass(frozen=True)
class Decide:
    """End what an earlier version left open, then store `decision` and carry it out."""

    decision: Decision
    earlier: Decision | None


@dataclass(frozen=True)
class Abort:
    """Nothing is decided: end the transactions of this attempt, and first store `mark` when it is given."""

    mark: Decision | None


def common_outcome(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Give an outcome whose write and job are those of all tasks, or None when there are no outcomes.

    Raises
    ------
    PylogError
        ``PYLOG_BROKER`` when the tasks worked on different writes, which no version of Spark does.
    """
    if len({outcome.write for outcome in outcomes}) > 1:
        names = sorted({outcome.write.name for outcome in outcomes})
        raise PylogError("PYLOG_BROKER", f"The tasks of one commit say that they wrote {' and '.join(names)}.")
    return outcomes[0] if outcomes else None


def next_step(
    stored: Decision | None, write: Write, outcomes: Sequence[Outcome], now_ms: int
) -> Nothing | Finish | Decide:
    """Say how a driver commits.

    Parameters
    ----------
    stored : Decision or None
        The last decision about the write's key.
    write : Write
        The write that is committed.
    outcomes : sequence of Outcome
        What its tasks did.
    now_ms : int
        The driver's clock, in milliseconds since 1970.

    Raises
    ------
    PylogError
        When this write cannot be committed.
    """
    transactions = tuple(outcome.transaction for outcome in outcomes if outcome.transaction is not None)
    if is_decided(stored, write):
        # A task that found the write given up has skipped its rows, and nobody else has written them.
        if stored.aborted and (transactions or any(outcome.skipped for outcome in outcomes)):
            raise ended_from_outside(write)
        return Finish(stored)
    if any(outcome.skipped for outcome in outcomes):
        raise PylogError(
            "PYLOG_SINK_STATE",
            f"A task found {write.name} decided, and now there is no decision in the topic {topic_of(write.key)}: it was deleted while the "
            "query ran; run the query again.",
        )
    if stored is not None and any(transaction.transactional_id in stored.revoked for transaction in transactions):
        raise ended_from_outside(write)
    if not transactions and write.kind != BATCH:
        return Nothing()
    if len(transactions) > TRANSACTIONS_MAX:
        raise PylogError(
            "PYLOG_INVALID_OPTION",
            f"{len(transactions)} Spark partitions wrote rows and one write can have {TRANSACTIONS_MAX}; use coalesce, or "
            "set delivery to at-least-once.",
        )
    topic_ids: Mapping[str, str] = stored.topic_ids if stored is not None else {}
    for outcome in outcomes:
        topic_ids = checked(write, topic_ids, outcome.topic_ids)
    revoked = still_revoked(stored, write.version)
    decision = Decision(write, transactions, now_ms, topic_ids=topic_ids, revoked=revoked)
    return Decide(decision, stored if stored and stored.transactions else None)


def ended_from_outside(write: Write) -> PylogError:
    """Give the error for a driver whose write another process ended before it was decided."""
    return PylogError(
        "PYLOG_SINK_FENCED",
        f"{write.title} was ended before it was committed, with pylog sink abort or because it was open for longer than its option "
        "abandonedAfter says, so nothing of it is there; run it again, with a larger abandonedAfter if it needs the time.",
    )


def still_revoked(stored: Decision | None, version: int) -> tuple[str, ...]:
    """Give the revocations that a decision about `version` leaves in force: those of later versions."""
    names = ((revoked_id, parse_task_id(revoked_id)) for revoked_id in (stored.revoked if stored else ()))
    return tuple(revoked_id for revoked_id, name in names if name and name.version > version)


def revoking(
    stored: Decision | None, write: Write, ids: Iterable[str], open_ids: Iterable[str], now_ms: int
) -> Decision:
    """Give the record that keeps `stored` and revokes `ids`: no later decision may list them. A write that is never repeated is
    given up instead.

    Parameters
    ----------
    stored : Decision or None
        The last decision about the write's key.
    write : Write
        A write with that key.
    ids : iterable of str
        Transactional ids of undecided versions.
    open_ids : iterable of str
        The open transactions of the key. Revocations of transactions that have ended are dropped.
    now_ms : int
        The clock, in milliseconds since 1970.
    """
    if write.kind == ONCE and stored is None:
        return Decision(Write(ONCE, write.key, 0), (), now_ms, aborted=True)
    stored = stored or Decision(write, (), now_ms)
    still_open = set(open_ids)
    before = [revoked_id for revoked_id in stored.revoked if revoked_id in still_open]
    return replace(stored, revoked=tuple(dict.fromkeys([*before, *ids])))


def portion(stored: Decision | None, write: Write, ids: Iterable[str], open_ids: Iterable[str]) -> list[str]:
    """Give as many of `ids` as one record can revoke, at least one; those that are revoked already come first.

    The parameters are those of `revoking`. The others are revoked by the next record, when these are ended. No driver can commit
    them meanwhile: a decision about a version lists the transactions of all of its tasks, and some of these have ended.
    """
    if write.kind == ONCE and stored is None:
        return list(ids)
    still_open, wanted = set(open_ids), set(ids)
    before = [revoked_id for revoked_id in (stored.revoked if stored else ()) if revoked_id in still_open]
    left = REVOKED_BYTES_MAX - sum(revoked_bytes(revoked_id) for revoked_id in before if revoked_id not in wanted)
    chosen: list[str] = []
    for wanted_id in sorted(wanted, key=lambda wanted_id: (wanted_id not in before, wanted_id)):
        left -= revoked_bytes(wanted_id)
        if left < 0 and chosen:
            break
        chosen.append(wanted_id)
    return chosen


def abort_step(stored: Decision | None, write: Write, now_ms: int) -> Finish | Abort:
    """Say how a driver gives up a write. A commit that failed may have stored its decision nevertheless."""
    if is_decided(stored, write):
        return Finish(stored)
    return Abort(Decision(write, (), now_ms, aborted=True) if write.kind == ONCE else None)


def over(decision: Decision) -> Decision | None:
    """Give what is kept of a decision that is carried out: of a named batch all but its list of transactions, of a write that is
    never repeated nothing (None).

    A query's decision is kept as it is, which saves a write for each micro-batch: carrying it out again does nothing.
    """
    if decision.write.kind == BATCH:
        return replace(decision, transactions=())
    return decision if decision.write.kind == STREAM else None


def losers(open_ids: Iterable[str], decision: Decision) -> list[str]:
    """Give the open transactions of the key that no later decision can list."""
    listed = {transaction.transactional_id for transaction in decision.transactions}
    names = ((open_id, parse_task_id(open_id)) for open_id in open_ids if open_id not in listed)
    key, version = decision.write.key, decision.write.version
    return sorted(open_id for open_id, name in names if name and name.key == key and name.version <= version)


def given_up(open_ids: Iterable[str], write: Write, job: str) -> list[str]:
    """Give the open transactions of one attempt at a write."""
    names = ((open_id, parse_task_id(open_id)) for open_id in open_ids)
    return sorted(
        open_id
        for open_id, name in names
        if name and (name.key, name.version, name.job) == (write.key, write.version, job)
    )


def not_safe(
    transactions: Iterable[Transaction], described: Mapping[str, TransactionDescription], now_ms: int
) -> list[str]:
    """Give the ids of transactions that have ended, or that the brokers may end before a decision is carried out.

    Parameters
    ----------
    transactions : iterable of Transaction
        The transactions of the decision.
    described : mapping of str to TransactionDescription
        What brokers say of them, by transactional id.
    now_ms : int
        The driver's clock, in milliseconds since 1970. The brokers' clocks may differ from it by `MARGIN_MS`.
    """
    return sorted(
        transaction.transactional_id
        for transaction in transactions
        if not _is_safe(transaction, described.get(transaction.transactional_id), now_ms)
    )


def open_for_ms(described: Iterable[TransactionDescription], now_ms: int) -> int | None:
    """Give for how many milliseconds the oldest of some transactions has been open; None when no start is known.

    Parameters
    ----------
    described : iterable of TransactionDescription
        Transactions with an error, or without a start, are left out.
    now_ms : int
        The clock, in milliseconds since 1970. A start after it counts as now, since the brokers' clocks may be ahead.
    """
    began = [description.start_time_ms for description in described if not description.error]
    known = [start_ms for start_ms in began if start_ms >= 0]
    return max(now_ms - min(known), 0) if known else None


def timeouts_ms(open_ids: Iterable[str]) -> dict[tuple[str, int], int]:
    """Give after how many milliseconds each write, by key and version, counts as abandoned: the longest time that one of its open
    transactions carries in its id."""
    found: dict[tuple[str, int], int] = {}
    for open_id in open_ids:
        name = parse_task_id(open_id)
        if name is not None:
            write = name.key, name.version
            found[write] = max(found.get(write, 0), name.abandoned_after_ms)
    return found


def abandoned(open_ids: Sequence[str], longer: Mapping[int, Collection[str]]) -> list[str]:
    """Give the open transactions of abandoned writes. A write is abandoned when each of its open transactions has been open for
    longer than the write allows.

    Parameters
    ----------
    open_ids : sequence of str
        The ids of all open transactions, read after `longer`: a transaction that has just begun shows that its driver lives.
    longer : mapping of int to collection of str
        Milliseconds -> the transactions that have been open for longer than that.
    """
    timeouts = timeouts_ms(open_ids)
    names = ((open_id, parse_task_id(open_id)) for open_id in open_ids)
    writes = [(open_id, (name.key, name.version)) for open_id, name in names if name]
    alive = {write for open_id, write in writes if open_id not in longer.get(timeouts[write], ())}
    return sorted(open_id for open_id, write in writes if write not in alive)


def is_prepared(described: TransactionDescription) -> bool:
    """Whether a transaction is prepared: it waits for a decision, and no time-out ends it."""
    return described.state == OPEN and described.timeout_ms == _NEVER_MS


def needs_help(decision: Decision, own: Write, now_ms: int) -> bool:
    """Whether a driver of another batch should finish `decision`."""
    waiting = decision.write.kind == ONCE or (decision.write.kind == BATCH and bool(decision.transactions))
    return waiting and decision.write.key != own.key and now_ms - decision.decided_ms > HELP_AFTER_MS


def _is_safe(transaction: Transaction, described: TransactionDescription | None, now_ms: int) -> bool:
    if described is None or described.state != OPEN:
        return False
    if transaction.prepared:  # its id is never used again, so the open transaction is this one
        return True
    if (described.producer_id, described.producer_epoch) != (transaction.producer_id, transaction.producer_epoch):
        return False
    left_ms = described.start_time_ms + described.timeout_ms - now_ms
    return left_ms > min(MARGIN_MS, described.timeout_ms // 10)
