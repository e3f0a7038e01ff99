"""The driver: committing a write, and giving one up. Stateless and idempotent, since Spark calls each in a fresh process.

Each step that a crash could separate from the next is a function of its own:

    fence           become the only driver; a record that the driver before was storing is now either committed or aborted
    read_decision   read the last decision about the key
    decide          store the decision: from here on the write has happened
    end             commit all its transactions and wait: from here on readers see it
    clean_up        abort all other open transactions of the key: no decision can list them any more
    forget          drop the list of transactions of a batch that is done
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from pylog_spark.errors import PylogError, from_native
from pylog_spark.sink.decision import Decision, Transaction, is_decided
from pylog_spark.sink.identity import BATCH, STREAM, Write
from pylog_spark.sink.ledger import Driver, Ledger
from pylog_spark.sink.protocol import (
    Decide,
    Finish,
    Nothing,
    Outcome,
    abort_step,
    ended_from_outside,
    given_up,
    losers,
    needs_help,
    next_step,
    not_safe,
    over,
)

_log = logging.getLogger("pylog_spark")

#: Error codes of EndTxn after which another try is useless: the transaction is not open any more.
_NOT_OPEN = frozenset(
    {
        "INVALID_TXN_STATE",
        "INVALID_PRODUCER_EPOCH",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_ID_MAPPING",
        "TRANSACTIONAL_ID_NOT_FOUND",
    }
)
#: Of those, the error codes for a transactional id that the brokers have forgotten.
_FORGOTTEN = frozenset({"INVALID_PRODUCER_ID_MAPPING", "TRANSACTIONAL_ID_NOT_FOUND"})
_COMMITTED = frozenset({"PrepareCommit", "CompleteCommit"})
#: Longest wait in ms for one request while a write is given up: brokers that do not answer may be the reason for giving up.
_ABORT_TIMEOUT_MS = 10_000


def commit(
    client: Mapping[str, str], write: Write, outcomes: Sequence[Outcome], *, fails_when_written: bool = False
) -> None:
    """Commit what the tasks have written, or carry out an earlier decision. When this returns, readers see the rows.

    Parameters
    ----------
    client : mapping of str to str
        Settings of the native client.
    write : Write
        The write that is committed.
    outcomes : sequence of Outcome
        What its tasks did.
    fails_when_written : bool
        Whether a batch that was decided before, and is not written now, is an error; else it is a warning.

    Raises
    ------
    PylogError
        ``PYLOG_ALREADY_WRITTEN``, ``PYLOG_SINK_FENCED``, ``PYLOG_SINK_STATE``, ``PYLOG_TRANSACTION_LOST``, and the conditions of a failed request.
    """
    with closing(Ledger(client, waits=True)) as ledger:
        if not _anything_to_do(ledger, write, outcomes):
            return
        ledger.ensure(write.key)
        with closing(fence(ledger, write)) as driver:
            is_repeated = not _commit(ledger, driver, write, outcomes) and write.kind == BATCH
        if is_repeated and fails_when_written:
            raise already_written(write)
        if is_repeated:
            _log.warning("%s was written before and is not written again", write.title)
        if write.kind != STREAM:
            _help_neighbours(client, ledger, write)


def already_written(write: Write) -> PylogError:
    """The error of a batch that is not written, because it was before."""
    return PylogError(
        "PYLOG_ALREADY_WRITTEN",
        f"{write.title}, or a later version, was written before, so nothing is written now (whenWritten=error); give a higher txnVersion, or "
        "another txnAppId.",
    )


def finish(client: Mapping[str, str], write: Write) -> None:
    """Carry out what is decided about `write`, completely, in place of a driver that died."""
    with closing(Ledger(client, waits=True)) as ledger, closing(fence(ledger, write)) as driver:
        _commit(ledger, driver, write, ())


def abort(client: Mapping[str, str], write: Write, job: str, transactions: Sequence[Transaction]) -> None:
    """Give up one attempt at a write: its transactions are aborted, unless they are decided already."""
    timeout_ms = min(_ABORT_TIMEOUT_MS, int(client.get("default.api.timeout.ms", _ABORT_TIMEOUT_MS)))
    with closing(Ledger({**client, "default.api.timeout.ms": str(timeout_ms)}, waits=True)) as ledger:
        ledger.ensure(write.key)
        # No need to wait: fencing this write's own driver commits or aborts at once what it was storing when it died.
        stored = ledger.decision(write.key, until_stable=False)
        if isinstance(abort_step(stored, write, now_ms()), Finish):
            return  # decided by another driver, which must not be fenced, or by this one: the next commit finishes it
        with closing(fence(ledger, write)) as driver:
            step = abort_step(read_decision(ledger, write), write, now_ms())
            if isinstance(step, Finish):
                end(ledger, step.decision)
                clean_up(ledger, step.decision)
                return
            if step.mark is not None:
                decide(driver, step.mark)
            ledger.end([transaction.identity for transaction in transactions], commit=False)
            ledger.fence(given_up(ledger.open_transactions(write.key), write, job))


def fence(ledger: Ledger, write: Write) -> Driver:
    """Become the only driver of the write."""
    return ledger.driver(write)


def read_decision(ledger: Ledger, write: Write) -> Decision | None:
    """Give the last decision about the key, up to now."""
    return ledger.decision(write.key, until_stable=True)


def check_alive(ledger: Ledger, write: Write, transactions: Sequence[Transaction]) -> None:
    """Refuse to decide on transactions that have ended: ordinary ones by their time-out, prepared ones because another process ended them.

    No other process aborts them between this check and the decision: it would fence this driver first, and then the decision fails.
    """
    lost = not_safe(
        transactions, ledger.describe([transaction.transactional_id for transaction in transactions]), now_ms()
    )
    if any(transaction.prepared for transaction in transactions if transaction.transactional_id in lost):
        raise ended_from_outside(write)
    if lost:
        raise PylogError(
            "PYLOG_TRANSACTION_LOST",
            f"{len(lost)} of {len(transactions)} transactions of {write.name} timed out, or would have, before they were committed "
            f"(the first is {lost[0]}), so none is; raise kafka.transaction.timeout.ms, or let a write take less time.",
        )


def decide(driver: Driver, decision: Decision) -> None:
    """Store the decision."""
    driver.store(decision)


def end(ledger: Ledger, decision: Decision) -> None:
    """Commit every transaction of the decision and wait until readers see their rows. May be called again."""
    lost = _end(ledger, decision)
    if lost:
        raise PylogError(
            "PYLOG_TRANSACTION_LOST",
            f"{decision.write.title} was decided and not finished in time: the brokers ended {len(lost)} of its "
            f"{len(decision.transactions)} transactions (the first is {lost[0]}) and their rows are lost; to write them again, run the "
            "query once with delivery set to at-least-once, which also repeats the rows of the others.",
        )


def clean_up(ledger: Ledger, decision: Decision) -> None:
    """Abort the open transactions that the decision does not list: those of failed or late attempts."""
    ledger.fence(losers(ledger.open_transactions(decision.write.key), decision))


def forget(ledger: Ledger, decision: Decision) -> None:
    """Drop the list of transactions of a batch that is done, unless there is a newer decision by now."""
    kept = over(decision)
    if kept == decision:
        return
    try:
        with closing(fence(ledger, decision.write)) as driver:
            if read_decision(ledger, decision.write) == decision:
                driver.store(kept)
    except PylogError as error:
        # The rows are there. The next commit of this name, or one whose decision is in the same partition, drops the list.
        _log.warning("The decision about %s is left for later: %s", decision.write.name, error.sentence)


def _anything_to_do(ledger: Ledger, write: Write, outcomes: Sequence[Outcome]) -> bool:
    """Whether a commit has to fence. A micro-batch without rows needs none, and a query may have many of those."""
    if write.kind == BATCH or any(outcome.skipped or outcome.transaction for outcome in outcomes):
        return True
    stored = read_decision(ledger, write)
    return is_decided(stored, write)


def _commit(ledger: Ledger, driver: Driver, write: Write, outcomes: Sequence[Outcome]) -> bool:
    """Take the next step to its end; whether it was this commit that decided."""
    step = next_step(read_decision(ledger, write), write, outcomes, now_ms())
    if isinstance(step, Nothing):
        return False
    decision = step.decision
    if isinstance(step, Decide):
        if step.earlier is not None:
            _end_earlier(ledger, step.earlier)
        check_alive(ledger, write, decision.transactions)
        decide(driver, decision)
    elif decision.write.version > write.version and write.kind == STREAM:
        _log.warning("%s was written before and is not written again", write.title)
    end(ledger, decision)
    clean_up(ledger, decision)
    forget(ledger, decision)
    return isinstance(step, Decide)


def _end_earlier(ledger: Ledger, earlier: Decision) -> None:
    """Finish the version before, whose driver may have died. Usually there is nothing left to do."""
    lost = _end(ledger, earlier)
    if lost:
        _log.warning("%d transactions of %s are not known to be committed", len(lost), earlier.write.name)


def _end(ledger: Ledger, decision: Decision) -> list[str]:
    """Commit all transactions; returns the ids of those that the brokers have not committed and never will."""
    answers = ledger.end([transaction.identity for transaction in decision.transactions], commit=True)
    failed = {result.transactional_id: result.error for result in answers if result.error is not None}
    for result in answers:
        if result.error is not None and result.error not in _NOT_OPEN:
            raise from_native(result.error, result.message or result.error)
    if decision.prepared:  # only a decision ends these, and brokers forget an id only after its transaction has ended
        failed = {name: error for name, error in failed.items() if error not in _FORGOTTEN}
    states = ledger.describe(list(failed))
    return sorted(name for name in failed if name not in states or states[name].state not in _COMMITTED)


def _help_neighbours(client: Mapping[str, str], ledger: Ledger, write: Write) -> None:
    """Finish decided batches whose drivers died, because those batches may never run again."""
    for other in ledger.neighbours(write.key):
        if needs_help(other, write, now_ms()):
            try:
                finish(client, other.write)
            except PylogError as error:
                _log.warning(
                    "Version %d of %s is left unfinished: %s", other.write.version, other.write.key, error.sentence
                )


def now_ms() -> int:
    """Give the time in milliseconds since 1970, as decisions store it."""
    return time.time_ns() // 1_000_000
