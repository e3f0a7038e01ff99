"""Transactions, and which of them have stalled."""

from __future__ import annotations

import time
from typing import Any

from pylog_spark.client.errors import LogError
from pylog_spark.results.transactions import TransactionDescription, TransactionListing
from pylog_spark.web.console.call import Call

#: Most transactions that one answer names, those that are open first.
TRANSACTIONS_MAX = 500
#: A transaction that is open for longer, or beyond its own time-out, is called stalled.
STALLED_S = 60.0
_OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


def transactions(call: Call) -> dict[str, Any]:
    """The last transaction of each transactional id that the user may describe."""
    listed = call.session.admin.transactions()
    listed.sort(key=lambda each: (each.state not in _OPEN, each.transactional_id))
    shown, cut = listed[:TRANSACTIONS_MAX], len(listed) - TRANSACTIONS_MAX
    described = {each.transactional_id: each for each in _described(call, [each.transactional_id for each in shown])}
    now_ms = int(time.time() * 1000)
    return {
        "transactions": [_line(each, described.get(each.transactional_id), now_ms) for each in shown],
        "cut": f"{TRANSACTIONS_MAX} transactions are listed; {cut} more are not." if cut > 0 else None,
    }


def _described(call: Call, names: list[str]) -> list[TransactionDescription]:
    try:
        found = call.session.admin.describe_transactions(names) if names else []
    except LogError:
        return []
    return [each for each in found if not each.error]


def _line(listed: TransactionListing, described: TransactionDescription | None, now_ms: int) -> dict[str, Any]:
    state = listed.state if described is None else described.state
    is_open, began_ms = state in _OPEN, -1 if described is None else described.start_time_ms
    age_s = round(max(now_ms - began_ms, 0) / 1000, 3) if is_open and began_ms >= 0 else None
    timeout_ms = None if described is None else described.timeout_ms
    return {
        "id": listed.transactional_id,
        "state": state,
        "producer_id": listed.producer_id,
        "epoch": None if described is None else described.producer_epoch,
        "started_ms": began_ms if began_ms >= 0 else None,
        "age_s": age_s,
        "timeout_ms": timeout_ms,
        "stalled": age_s is not None and age_s > min(STALLED_S, (timeout_ms or 0) / 1000 or STALLED_S),
        "partitions": [] if described is None else [[each.topic, each.partition] for each in described.partitions],
        "coordinator": listed.coordinator,
    }
