"""Which transactions hold readers of committed data back: those of this sink and of other producers that are open for long.

For the driver of a reader that cannot read its partitions to their ends, because the last stable offset stays behind.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing

from pylog_spark.errors import PylogError
from pylog_spark.results.transactions import TransactionDescription
from pylog_spark.sink.abandoned import NOT_KNOWN, end_those_of, with_short_timeout
from pylog_spark.sink.commit import now_ms
from pylog_spark.sink.identity import TaskName, parse_task_id
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.overview import UNDECIDED, WriteStatus, write_statuses
from pylog_spark.sink.protocol import is_prepared, open_for_ms, timeouts_ms

_log = logging.getLogger("pylog_spark")

#: Readers that wait for a transaction are warned when it has been open for longer than this.
LONG_MS = 60_000
#: Most transactions that are described for one warning.
_LOOKED_AT_MAX = 1_000
#: Most of them that are named in it.
_NAMED_MAX = 5


def release(client: Mapping[str, str], partitions: Collection[tuple[str, int]]) -> tuple[int, Mapping[str, str]]:
    """End abandoned writes. Returns how many, and what still holds `partitions` back, as `holders` gives it."""
    ended = 0
    try:
        with closing(Ledger(with_short_timeout(client))) as ledger:
            ended = end_those_of(ledger)
            return ended, holders(ledger, partitions)
    except PylogError as error:
        if error.condition != NOT_KNOWN:
            _log.warning("Cannot find out which transaction holds readers back: %s", error.sentence)
        return ended, {}


def holders(ledger: Ledger, partitions: Collection[tuple[str, int]]) -> dict[str, str]:
    """Give the transactions that write to `partitions` and have been open for longer than `LONG_MS`.

    Returns
    -------
    dict of str to str
        Key and version of a write of this sink, or the transactional id of another producer -> a clause that says for how long it
        has been open and which command ends it.
    """
    wanted = set(map(tuple, partitions))
    described = ledger.describe(ledger.open_of_anybody(LONG_MS)[:_LOOKED_AT_MAX]).values()
    there = [description for description in described if any(each in wanted for each in description.partitions)]
    names = {description.transactional_id: parse_task_id(description.transactional_id) for description in there}
    found = {
        description.transactional_id: _of_others(description)
        for description in there
        if names[description.transactional_id] is None
    }
    for key in sorted({name.key for name in names.values() if name}):
        decision = ledger.decision(key, until_stable=False)
        known = [decision] if decision else []
        for status in write_statuses(
            known, [transactional_id for transactional_id, name in names.items() if _is_of(name, key)]
        ):
            if status.open:
                found[f"{key} {status.version}"] = _of_sink(status, there)
    return dict(sorted(found.items())[:_NAMED_MAX])


def _is_of(name: TaskName | None, key: str) -> bool:
    return name is not None and name.key == key


def _of_others(description: TransactionDescription) -> str:
    name = description.transactional_id
    return (
        f"the transaction {name} of producer {description.producer_id}, open for {_age_s([description]):.0f} s; "
        f"pylog transaction abort {shlex.quote(name)} --execute ends it"
    )


def _of_sink(status: WriteStatus, described: Iterable[TransactionDescription]) -> str:
    own = [each for each in described if each.transactional_id in status.open]
    prepared = ", prepared" if all(map(is_prepared, own)) else ""
    what = f"the {status.state} write {status.key} (version {status.version}, transactions: {len(own)}{prepared}), open for {_age_s(own):.0f} s; "
    key = shlex.quote(status.key)
    if status.state != UNDECIDED:
        return f"{what}pylog sink finish {key} ends it"
    (after_ms,) = timeouts_ms(status.open).values()
    return (
        f"{what}unless its driver commits it, the next driver that finds it after {after_ms // 1000} s ends it, and pylog sink abort {key} "
        "--execute ends it now"
    )


def _age_s(described: Sequence[TransactionDescription]) -> float:
    return (open_for_ms(described, now_ms()) or 0) / 1000
