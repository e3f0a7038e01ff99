"""The writes that the brokers know of, for an administrator: what is decided, what is open, and how to end it.

Every version of a write that is not done is in one of these states:

    finished     decided, and all transactions of its list are committed
    unfinished   decided, and some transactions of its list are open: its driver died or is committing them; finishing it is safe
    left over    open transactions that the decision about their version, or about a later one, does not list
    undecided    open transactions of a version that is not decided: the write is running, or was abandoned

An undecided write is aborted in two steps, so that a driver that is still alive can never commit a part of it: the one driver that is
not fenced first stores that its transactions are revoked, and then ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

from pylog_spark.errors import PylogError
from pylog_spark.sink import commit
from pylog_spark.sink.decision import Decision
from pylog_spark.sink.identity import parse_task_id, write_of
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.protocol import portion, revoking

FINISHED = "finished"
UNFINISHED = "unfinished"
LEFT_OVER = "left over"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class WriteStatus:
    """One version of a write.

    Attributes
    ----------
    key : str
        The write's key.
    version : int
        The version.
    kind : str or None
        The kind of write (`pylog_spark.sink.identity`); None when only its tasks are known.
    state : str
        `FINISHED`, `UNFINISHED`, `LEFT_OVER` or `UNDECIDED`.
    open : tuple of str
        Transactional ids of its open transactions.
    """

    key: str
    version: int
    kind: str | None
    state: str
    open: tuple[str, ...]


def write_statuses(decisions: Iterable[Decision], open_ids: Iterable[str]) -> list[WriteStatus]:
    """Give the status of every write, by key and version. Pure."""
    decided = {decision.write.key: decision for decision in decisions}
    waiting: dict[tuple[str, int, str], list[str]] = {}
    for open_id in sorted(open_ids):
        name = parse_task_id(open_id)
        if name is not None:
            state = _state_of(open_id, name.version, decided.get(name.key))
            waiting.setdefault((name.key, name.version, state), []).append(open_id)
    for key, decision in decided.items():
        version = decision.write.version
        if version >= 0 and (key, version, UNFINISHED) not in waiting:
            waiting[key, version, FINISHED] = []
    kinds = {key: decision.write.kind for key, decision in decided.items()}
    return [
        WriteStatus(key, version, kinds.get(key), state, tuple(ids))
        for (key, version, state), ids in sorted(waiting.items())
    ]


def survey(client: Mapping[str, str]) -> list[WriteStatus]:
    """Ask the brokers for the status of every write."""
    with closing(Ledger(client)) as ledger:
        return write_statuses(ledger.everything(), ledger.open_transactions())


def finish_decided(client: Mapping[str, str], key: str) -> None:
    """Commit what is decided about a write and still open, and abort what is left over."""
    with closing(Ledger(client)) as ledger:
        stored = ledger.decision(key, until_stable=True)
    if stored is not None:
        commit.finish(client, stored.write)


def abort_undecided(client: Mapping[str, str], key: str) -> list[str]:
    """Abort all open transactions of the undecided versions of a write, and give their transactional ids.

    Raises
    ------
    PylogError
        ``PYLOG_SINK_STATE`` when nothing is undecided: what is decided may not be aborted.
    """
    with closing(Ledger(client)) as ledger:
        ledger.ensure(key)
        ids, left = _abort_portion(ledger, key, undecided)
        while left:
            more, left = _abort_portion(ledger, key, _undecided)
            if set(more) <= set(ids):
                break  # they do not end, or have ended already: another round would change nothing
            ids += more
    return ids


def _abort_portion(
    ledger: Ledger, key: str, chosen: Callable[[Iterable[WriteStatus], str], list[str]]
) -> tuple[list[str], int]:
    """Abort as many of the `chosen` transactions as one record can revoke. Returns their ids, and how many are left."""
    stored = ledger.decision(key, until_stable=True)
    write = stored.write if stored else write_of(key)
    with closing(commit.fence(ledger, write)) as driver:
        stored = commit.read_decision(ledger, write)
        open_ids = ledger.open_transactions(key)
        every = chosen(write_statuses([stored] if stored else [], open_ids), key)
        if not every:
            return [], 0
        ids = portion(stored, write, every, open_ids)
        commit.decide(driver, revoking(stored, write, ids, open_ids, commit.now_ms()))
        ledger.fence(ids)
    return ids, len(every) - len(ids)


def undecided(found: Iterable[WriteStatus], key: str) -> list[str]:
    """Give the open transactions of a write's undecided versions. Raises `PylogError` when there are none."""
    of_key = [status for status in found if status.key == key]
    ids = _undecided(of_key, key)
    if ids:
        return ids
    if any(status.state in (UNFINISHED, LEFT_OVER) for status in of_key):
        raise PylogError(
            "PYLOG_SINK_STATE", f"The open transactions of {key!r} are decided; pylog sink finish {key} ends them."
        )
    raise PylogError(
        "PYLOG_SINK_STATE", f"No write {key!r} has an open transaction; pylog sink list shows the writes there are."
    )


def _undecided(found: Iterable[WriteStatus], key: str) -> list[str]:
    return [name for status in found if status.key == key and status.state == UNDECIDED for name in status.open]


def _state_of(name: str, version: int, decision: Decision | None) -> str:
    if decision is None or version > decision.write.version:
        return UNDECIDED
    return (
        UNFINISHED if any(transaction.transactional_id == name for transaction in decision.transactions) else LEFT_OVER
    )
