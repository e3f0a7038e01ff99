"""Runs a case against both brokers at once and compares the answers; `case` makes a pytest test of a script."""

import fnmatch
import itertools
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.oracle.differences import DIFFERENCES
from tests.oracle.normal import differences
from tests.oracle.script import Answer, Script, error_names

GROUP, TRANSACTION = 0, 1
# Enough that every partition of the internal topics has one.
_KEYS = [f"warm-up-{number}" for number in range(32)]
_numbers = itertools.count(1)
_PLACE = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Brokers:
    """Addresses of the two; without pylog's, cases are held against Apache Kafka alone."""

    kafka: str
    pylog: str | None

    @property
    def both(self) -> list[str]:
        """Those that there are."""
        return [self.kafka] if self.pylog is None else [self.kafka, self.pylog]

    def warmed_up(self) -> "Brokers":
        """Wait until both give producer ids and coordinate every group and transaction: their topics are made now."""
        for servers in self.both:
            script = Script(servers, "warm-up", servers is self.kafka)
            script.until_good("InitProducerId", transactional_id=None, transaction_timeout_ms=1000)
            for key_type, key in itertools.product((GROUP, TRANSACTION), _KEYS):
                script.until_good("FindCoordinator", key_type=key_type, coordinator_keys=[key])
            script.until_good("DescribeGroups", 5, groups=_KEYS)
            for key in _KEYS:
                script.until(_is_loaded, "InitProducerId", transactional_id=key, transaction_timeout_ms=1000)
            script.close()
        return self

    def compare(self, name: str, script: Callable[[Script], None]) -> "Run":
        """Run `script` against both; fails unless they answer alike, but for what `DIFFERENCES` lists for it. Gives Apache Kafka's run."""
        prefix = f"case{os.getpid()}-{next(_numbers)}"
        with ThreadPoolExecutor(2) as threads:
            hands = [Script(servers, prefix, servers is self.kafka) for servers in self.both]
            kafka, pylog = [*threads.map(lambda hand: _run(script, hand), hands)] * (3 - len(hands))
        if os.environ.get("PYLOG_ORACLE_SHOW"):
            _show(kafka, pylog)
        _check(name, kafka, pylog)
        return kafka


@dataclass(frozen=True)
class Run:
    """What came of a script: its answers, and why it ended early (if it did)."""

    transcript: list[tuple[str, Any]]
    error: Exception | None


def _is_loaded(answer: Answer) -> bool:
    not_yet = {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
    }
    return not not_yet & set(error_names(answer))


def _run(script: Callable[[Script], None], hands: Script) -> Run:
    error = None
    try:
        script(hands)
    except Exception as raised:  # noqa: BLE001  # it is reported with the answers up to it
        error = raised
    finally:
        hands.close()
    return Run(hands.transcript, error)


def _check(name: str, kafka: Run, pylog: Run) -> None:
    if kafka.error is not None:
        raise kafka.error
    listed = [difference for difference in DIFFERENCES if name in difference.cases and kafka is not pylog]
    unseen = {difference.name for difference in listed}
    wrong = []
    for step, ((asked, truth), (_, ours)) in enumerate(zip(kafka.transcript, pylog.transcript, strict=False), 1):
        for path, theirs, own in differences(truth, ours):
            field = f"{asked.split()[0]} {_PLACE.sub('', path)}"
            known = [each.name for each in listed if fnmatch.fnmatchcase(field, each.field)]
            unseen -= set(known)
            if not known:
                wrong.append(f"step {step}, {asked}, {path}: Apache Kafka {theirs!r}, pylog {own!r}")
    assert wrong == [], "pylog answers otherwise:\n" + "\n".join(wrong)
    if not listed:
        # After a difference that is listed the rest of a script may well make no sense.
        if pylog.error is not None:
            raise pylog.error
        assert len(kafka.transcript) == len(pylog.transcript)
    assert unseen == set(), f"these differences no longer occur, take {name} out of them: {unseen}"


def _show(kafka: Run, pylog: Run) -> None:
    for (asked, truth), (_, ours) in itertools.zip_longest(kafka.transcript, pylog.transcript, fillvalue=("-", "-")):
        print(f"\n{asked}\n  Kafka {truth}\n  pylog {ours}")


def case(script: Callable[[Script], None]) -> Callable[[Brokers], None]:
    """A test of the script's name that runs it against both brokers."""

    def test(brokers: Brokers) -> None:
        brokers.compare(script.__name__, script)

    test.__name__ = test.__qualname__ = script.__name__
    test.__module__ = script.__module__
    test.__doc__ = script.__doc__
    return test
