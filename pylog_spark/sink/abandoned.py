"""Ending writes whose drivers died. Another driver does it: one that has just committed, or one whose reader is held back.

A write counts as abandoned when all of its open transactions have been open for longer than their names say (option `abandonedAfter`), by
the clocks of the brokers that keep them. The driver that finds such a write does what the write's own driver would have to do:

    fence     become the write's only driver: a record that the driver before was storing is now committed or aborted, and it stores no more
    look      read the last decision and the write's age again
    finish    commit what is decided; that is never aborted
    revoke    store that no decision may list the undecided transactions
    abort     end these

So a driver that was only slow is fenced or finds the revocation, and fails. Errors here never fail the caller's own work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from pylog_spark.errors import PylogError
from pylog_spark.sink import commit
from pylog_spark.sink.identity import parse_task_id, write_of
from pylog_spark.sink.ledger import Ledger
from pylog_spark.sink.overview import UNDECIDED, write_statuses
from pylog_spark.sink.protocol import abandoned, open_for_ms, portion, revoking, timeouts_ms

_log = logging.getLogger("pylog_spark")

#: Longest wait in ms for one request. Longer than a driver may take to store its decision, for which a request may wait.
_TIMEOUT_MS = 15_000
#: Seconds after which no further write is ended, because the caller has its own work to do.
_DEADLINE_S = 30.0
#: The condition of brokers that cannot say for how long transactions have been open. They do not prepare any, so time-outs end them.
NOT_KNOWN = "PYLOG_NO_TRANSACTIONS"
#: Most transactions of one write that are described for their topics and times.
_DESCRIBED_MAX = 100


def end_abandoned(client: Mapping[str, str]) -> int:
    """End all abandoned writes, and give how many. Failures are logged as warnings and left to the next driver that looks."""
    try:
        with closing(Ledger(with_short_timeout(client))) as ledger:
            return end_those_of(ledger)
    except PylogError as error:
        _warn_unseen(error)
        return 0


def end_those_of(ledger: Ledger) -> int:
    """Do the same as `end_abandoned`, with a ledger whose client has the settings of `with_short_timeout`."""
    deadline = time.monotonic() + _DEADLINE_S
    ended = 0
    try:
        keys = sorted({name.key for open_id in _abandoned(ledger) if (name := parse_task_id(open_id))})
        for key in keys:
            if time.monotonic() < deadline:
                ended += _try_to_end(ledger, key, deadline)
    except PylogError as error:
        _warn_unseen(error)
    return ended


def _warn_unseen(error: PylogError) -> None:
    if error.condition != NOT_KNOWN:
        _log.warning("Cannot find out whether a write was abandoned: %s", error.sentence)


def with_short_timeout(client: Mapping[str, str]) -> dict[str, str]:
    """Give the client's settings with a short time-out, for requests on which the caller's own work does not depend."""
    given = client.get("default.api.timeout.ms", "")
    most = min(int(given), _TIMEOUT_MS) if given.isdecimal() else _TIMEOUT_MS
    return {**client, "default.api.timeout.ms": str(most)}


def _try_to_end(ledger: Ledger, key: str, deadline: float) -> int:
    """End the abandoned versions of one write, as long as there is time. Returns how many versions."""
    versions: set[int] = set()
    is_over = False
    try:
        ledger.ensure(key)
        while not is_over and time.monotonic() < deadline:
            ended, is_over = _end(ledger, key)
            versions |= ended
    except PylogError as error:
        # Fenced: another driver ends it, too, or its own driver is back.
        level = logging.INFO if error.condition == "PYLOG_SINK_FENCED" else logging.WARNING
        _log.log(level, "The abandoned write %s is left to others: %s", key, error.sentence)
    return len(versions)


def _end(ledger: Ledger, key: str) -> tuple[set[int], bool]:
    """End the abandoned transactions of one write, if it is still abandoned, as many as one record can revoke. Returns the versions, and
    whether none is left."""
    stored = ledger.decision(key, until_stable=False)
    with closing(commit.fence(ledger, stored.write if stored else write_of(key))) as driver:
        ids = _abandoned(ledger, key)
        stored = commit.read_decision(ledger, write_of(key))
        found = write_statuses([stored] if stored else [], ids)
        all_undecided = [name for status in found if status.state == UNDECIDED for name in status.open]
        decided = sorted(set(ids) - set(all_undecided))
        undecided: list[str] = []
        if stored and decided:
            sentence = _sentence(ledger, decided, "they are ended as it was decided")
            commit.end(ledger, stored)
            commit.clean_up(ledger, stored)
            _log.warning(sentence)
        if all_undecided:
            write, open_ids = stored.write if stored else write_of(key), ledger.open_transactions(key)
            undecided = portion(stored, write, all_undecided, open_ids)
            sentence = _sentence(ledger, undecided, "nobody had decided them, so they are aborted")
            commit.decide(driver, revoking(stored, write, undecided, open_ids, commit.now_ms()))
            ledger.fence(undecided)
            _log.warning(sentence)
    if stored and decided and not undecided:
        commit.forget(ledger, stored)
    versions = {name.version for ended_id in [*decided, *undecided] if (name := parse_task_id(ended_id))}
    return versions, len(undecided) == len(all_undecided)


def _abandoned(ledger: Ledger, key: str | None = None) -> list[str]:
    """Give the open transactions of abandoned writes."""
    ages = set(timeouts_ms(ledger.open_transactions(key)).values())
    if not ages:
        return []
    longer = {age: set(ledger.open_transactions(key, age)) for age in sorted(ages)}
    return abandoned(ledger.open_transactions(key), longer) if any(longer.values()) else []


def _sentence(ledger: Ledger, ids: Sequence[str], what: str) -> str:
    """Give the line to log about some transactions of one write, made before they are ended."""
    topics, age_s = _topics_and_age(ledger, ids)
    (key,) = {name.key for transactional_id in ids if (name := parse_task_id(transactional_id))}
    versions = sorted({name.version for transactional_id in ids if (name := parse_task_id(transactional_id))})
    return (
        f"The write {key} (version {', '.join(map(str, versions))}) was abandoned: {len(ids)} of its transactions, which wrote to "
        f"{', '.join(topics) or 'no topic'}, were open for {age_s:.0f} s, and {what}; pylog sink list shows what else is open."
    )


def _topics_and_age(ledger: Ledger, ids: Sequence[str]) -> tuple[list[str], float]:
    """Give the topics that transactions have written to, and for how many seconds the oldest has been open."""
    described = [description for description in ledger.describe(ids[:_DESCRIBED_MAX]).values() if not description.error]
    topics = sorted({topic for description in described for topic, _ in description.partitions})
    return topics, (open_for_ms(described, commit.now_ms()) or 0) / 1000
