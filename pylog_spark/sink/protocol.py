"""What a driver does next: pure functions of the stored decision, the tasks' messages and the version.

What holds, whoever crashes when:

- A version is decided once: the first decision that is stored about it stands, and its list of transactions is final.
- Transactions of a list are only ever committed. Any other of the same key is aborted only when the decision about its version
  is stored, or when its own driver gives it up and knows, fenced, that no decision lists it; or from outside, when it is revoked:
  written down, by the one driver that is not fenced, as one that no decision may list.
- What is revoked stays written down until it is ended or its version is decided, and a driver lists only what is still open. So
  it meets a revocation in one of the two, however late it comes.
- So a row is in the log, committed, iff its transaction is in the list of its version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pylog_spark.errors import PylogError
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink.decision import TOPIC, TRANSACTIONS_MAX, Decision, Transaction, is_decided, revoked_bytes
from pylog_spark.sink.identity import BATCH, ONCE, STREAM, Write, parse_task_id
from pylog_spark.sink.topics import checked

#: State of a transaction that nobody has ended.
OPEN = "Ongoing"
#: Time-out of a transaction that no broker ends, as brokers describe one that is prepared (KIP-939).
_NEVER_MS = 2**31 - 1
#: A transaction that can time out must have at least this left, or a tenth of its time-out, when it is decided.
MARGIN_MS = 30_000
#: How old a decided, unfinished batch is when another driver finishes it: its own is then dead, or long waiting.
HELP_AFTER_MS = 300_000
#: Most bytes of revocations in one record, which must fit into a batch of 1 MB with all else that a decision says.
REVOKED_BYTES_MAX = 50_000


@dataclass(frozen=True)
class Outcome:
    """What one task did, as far as the protocol is concerned: a part of its commit message.

    Attributes
    ----------
    write : Write
        What it worked on.
    job : str
        Which attempt at the whole write.
    transaction : Transaction or None
        None when it had no row, or skipped.
    skipped : bool
        It found the version decided and wrote nothing.
    topic_ids : mapping of str to str
        Of a query: the ids of the topics that it has written to, as far as the task knows.
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
    """The version is decided already: do what `decision` says, to the end."""

    decision: Decision


@dataclass(frozen=True)
class Decide:
    """End what an earlier version left, then store `decision` and do what it says."""

    decision: Decision
    earlier: Decision | None


@dataclass(frozen=True)
class Abort:
    """Nothing is decided: end the transactions of this attempt, and say so when `mark` is given."""

    mark: Decision | None


def agreed(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Give one outcome that speaks for all, or None when there is none.

    Raises
    ------
    PylogError
        When the tasks worked on different writes, which no version of Spark does.
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
        The last one about the key.
    write : Write
        What is committed.
    outcomes : sequence of Outcome
        Of its tasks.
    now_ms : int
        The driver's clock.

    Raises
    ------
    PylogError
        When this write cannot be committed.
    """
    transactions = tuple(outcome.transaction for outcome in outcomes if outcome.transaction is not None)
    if is_decided(stored, write):
        # A task that found it given up has skipped rows that nobody has written.
        if stored.aborted and (transactions or any(outcome.skipped for outcome in outcomes)):
            raise ended_from_outside(write)
        return Finish(stored)
    if any(outcome.skipped for outcome in outcomes):
        raise PylogError(
            "PYLOG_SINK_STATE",
            f"A task found {write.name} decided, and now there is no decision in the topic {TOPIC}: it was deleted while the "
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
    """Give the error of a driver whose write somebody else has ended undecided."""
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
    """Give the record that keeps `stored` and lets nobody decide on `ids`. A write that is never repeated is given up.

    Parameters
    ----------
    stored : Decision or None
        The last one about the key.
    write : Write
        Whose key it is.
    ids : iterable of str
        Transactional ids of undecided versions.
    open_ids : iterable of str
        Those of the key that are open: a revocation of one that has ended is of no use any more.
    now_ms : int
        The clock.
    """
    if write.kind == ONCE and stored is None:
        return Decision(Write(ONCE, write.key, 0), (), now_ms, aborted=True)
    stored = stored or Decision(write, (), now_ms)
    still_open = set(open_ids)
    before = [revoked_id for revoked_id in stored.revoked if revoked_id in still_open]
    return replace(stored, revoked=tuple(dict.fromkeys([*before, *ids])))


def portion(stored: Decision | None, write: Write, ids: Iterable[str], open_ids: Iterable[str]) -> list[str]:
    """Give those of `ids` that one record can revoke, at least one; those that are revoked already come first.

    The parameters are those of `revoking`. What is left is revoked when these are ended, by another record. No driver can
    commit the rest meanwhile: a decision about a version lists all of its tasks, and these have ended.
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
    """Say how a driver gives up: a commit that failed may have decided before."""
    if is_decided(stored, write):
        return Finish(stored)
    return Abort(Decision(write, (), now_ms, aborted=True) if write.kind == ONCE else None)


def over(decision: Decision) -> Decision | None:
    """Give what is kept of a decision that is done: a batch without its list; None for a write that is never repeated.

    A query's decision is kept as it is, which saves a write for each micro-batch: finishing it again does nothing.
    """
    if decision.write.kind == BATCH:
        return replace(decision, transactions=())
    return decision if decision.write.kind == STREAM else None


def losers(open_ids: Iterable[str], decision: Decision) -> list[str]:
    """Give the open transactions of the key that can never be decided any more."""
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
        To be decided.
    described : mapping
        What brokers say of them, by transactional id.
    now_ms : int
        The driver's clock; the brokers' may differ, which the margin allows for.
    """
    return sorted(
        transaction.transactional_id
        for transaction in transactions
        if not _is_safe(transaction, described.get(transaction.transactional_id), now_ms)
    )


def open_for_ms(described: Iterable[TransactionDescription], now_ms: int) -> int | None:
    """Give for how long the oldest of some transactions is open, None when that is not known of any.

    Parameters
    ----------
    described : iterable of TransactionDescription
        Those with an error, or without a start, count as not known.
    now_ms : int
        The clock; the brokers' may be ahead of it, which counts as just begun.
    """
    began = [description.start_time_ms for description in described if not description.error]
    known = [start_ms for start_ms in began if start_ms >= 0]
    return max(now_ms - min(known), 0) if known else None


def timeouts_ms(open_ids: Iterable[str]) -> dict[tuple[str, int], int]:
    """Give after how long each write, by key and version, counts as abandoned: the longest that its open transactions say."""
    found: dict[tuple[str, int], int] = {}
    for open_id in open_ids:
        name = parse_task_id(open_id)
        if name is not None:
            write = name.key, name.version
            found[write] = max(found.get(write, 0), name.abandoned_after_ms)
    return found


def abandoned(open_ids: Sequence[str], longer: Mapping[int, Collection[str]]) -> list[str]:
    """Give the open transactions of abandoned writes: those all of whose open transactions are open for longer than they may be.

    Parameters
    ----------
    open_ids : sequence of str
        All that are open, seen after `longer`: one that has just begun shows that its driver lives.
    longer : mapping
        By a time in ms, those that are open for longer than it.
    """
    timeouts = timeouts_ms(open_ids)
    names = ((open_id, parse_task_id(open_id)) for open_id in open_ids)
    writes = [(open_id, (name.key, name.version)) for open_id, name in names if name]
    alive = {write for open_id, write in writes if open_id not in longer.get(timeouts[write], ())}
    return sorted(open_id for open_id, write in writes if write not in alive)


def is_prepared(described: TransactionDescription) -> bool:
    """Whether a transaction waits for whoever decides on it, and for no time-out."""
    return described.state == OPEN and described.timeout_ms == _NEVER_MS


def needs_help(decision: Decision, own: Write, now_ms: int) -> bool:
    """Whether a driver of another batch should finish `decision`."""
    waiting = decision.write.kind == ONCE or (decision.write.kind == BATCH and bool(decision.transactions))
    return waiting and decision.write.key != own.key and now_ms - decision.decided_ms > HELP_AFTER_MS


def _is_safe(transaction: Transaction, described: TransactionDescription | None, now_ms: int) -> bool:
    if described is None or described.state != OPEN:
        return False
    if transaction.prepared:  # its name is never used again, so what is open is this transaction
        return True
    if (described.producer_id, described.producer_epoch) != (transaction.producer_id, transaction.producer_epoch):
        return False
    left_ms = described.start_time_ms + described.timeout_ms - now_ms
    return left_ms > min(MARGIN_MS, described.timeout_ms // 10)
