"""Runs a scenario on the ways and compares what each saw.

In `make test` a scenario runs one way, pylog on pylog, its streams without Spark's engine (`without_spark`) where they read to the end
of what is there; what the connector saw is read from the recorded answers (`recorded`).
A test marked `canary` runs all three ways in every run, and so does every test with ``PYLOG_PARITY=live``; what the connector sees
is then compared with its recorded answer, too. ``PYLOG_PARITY=record`` (`make parity`) writes the answers anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tests.parity.differences import DIFFERENCES
from tests.parity.recorded import Recording, decoded, encoded
from tests.parity.refusals import REFUSALS, conditions_in, words_of
from tests.parity.ways import Way

Scenario = Callable[[Way], Any]
#: In the configuration's stash: file -> the names of all its tests that were collected, before any were left out.
COLLECTED = pytest.StashKey[dict[Path, set[str]]]()


class Mode(Enum):
    """Where the connector's answers come from."""

    #: From the recording; Apache Kafka is not needed.
    RECORDED = "recorded"
    #: From the connector; they must be as recorded.
    LIVE = "live"
    #: From the connector; they are written down.
    RECORD = "record"

    @classmethod
    def of_environment(cls) -> Mode:
        """What ``PYLOG_PARITY`` says."""
        return cls(os.environ.get("PYLOG_PARITY") or "recorded")


class Ways:
    """The ways of one test.

    Parameters
    ----------
    ways : mapping
        ``connector`` (Spark's connector on Apache Kafka), ``pylog on Apache Kafka`` and ``pylog``, each made when it is looked up.
    test : str
        Its name within its file: the recorded answers are found by it.
    recording : Recording
        That of the test's file.
    mode : Mode
        Where the connector's answers come from.
    """

    def __init__(self, ways: Mapping[str, Way], test: str, recording: Recording, mode: Mode) -> None:
        self._ways = ways
        self._test = test
        self._recording = recording
        self._mode = mode
        self._answers: list[Any] = []

    @property
    def connector(self) -> Way:
        """Spark's connector on Apache Kafka."""
        return self._ways["connector"]

    @property
    def pylog_on_kafka(self) -> Way:
        """pylog on Apache Kafka."""
        return self._ways["pylog on Apache Kafka"]

    @property
    def pylog(self) -> Way:
        """pylog on pylog."""
        return self._ways["pylog"]

    def same(self, scenario: Scenario) -> Any:
        """What the connector saw, which is what the others must see; to be looked at by the test."""
        expected, others = self._run(lambda way: way.plain(scenario(way)))
        for way, seen in others:
            assert seen == expected, f"{way.label} differs:\n" + "\n".join(deviations(expected, seen))
        self._answered(expected)
        return expected

    def differ(self, difference: str, scenario: Scenario) -> tuple[Any, Any]:
        """What the connector saw and what pylog saw, the same on both brokers; they must differ, as `differences` says."""
        assert difference in DIFFERENCES
        expected, others = self._run(lambda way: way.plain(scenario(way)))
        (_, seen), *more = others
        for _, second in more:
            assert second == seen, "pylog sees one thing on its own broker and another on Apache Kafka"
        assert seen != expected, f"{difference!r} is no difference any more: take it from the list"
        self._answered(expected)
        return expected, seen

    def refused(self, situation: str, scenario: Scenario) -> None:
        """All ways refuse, each by its own name of the situation (`refusals`). The connector's words are what is recorded."""
        assert situation in REFUSALS

        def refusal(way: Way) -> str:
            with pytest.raises(Exception) as caught:  # Spark's, of many classes; the condition is what counts
                scenario(way)
            return str(caught.value)

        expected, others = self._run(refusal)
        label = "Spark's connector, as recorded,"
        if self._mode is not Mode.RECORDED:
            label = self.connector.label
        for name, text, is_connector in [(label, expected, True), *((way.label, text, False) for way, text in others)]:
            found = conditions_in(text, is_connector)
            assert situation in found, f"{name} says otherwise ({found or 'nothing known'}):\n{text[:3000]}"
        if self.live:
            expected = words_of(self.connector.plain(expected), situation)
        # Where a situation is known by more than one message, it may depend on time which one comes first.
        self._answered(expected, lambda recorded: situation in conditions_in(recorded, connector=True))

    @property
    def live(self) -> bool:
        """Whether the connector is asked, and not its recording."""
        return self._mode is not Mode.RECORDED

    def finish(self) -> None:
        """The test has passed: keep its answers, or see that it has asked for all that are recorded."""
        if self._mode is Mode.RECORD:
            if self._answers:
                self._recording.replace(self._test, self._answers)
        elif (count := self._recording.count(self._test)) != len(self._answers):
            raise AssertionError(
                f"{self._test} asked {len(self._answers)} times, {count} answers are recorded: run `make parity`"
            )

    def _run(self, see: Scenario) -> tuple[Any, list[tuple[Way, Any]]]:
        """What the connector sees, now or when it was recorded, and what pylog sees."""
        if not self.live:
            expected = self._recording.answer(self._test, len(self._answers))
            way = copy(self.pylog)
            way.through_spark = False
            return expected, [(way, see(way))]
        return see(self.connector), [(way, see(way)) for way in (self.pylog, self.pylog_on_kafka)]

    def _answered(self, answer: Any, agrees: Callable[[Any], bool] | None = None) -> None:
        """Note the connector's answer; what is recorded must be the same, or agree with it, unless it is being recorded."""
        assert decoded(encoded(answer)) == answer
        if self._mode is Mode.LIVE:
            recorded = self._recording.answer(self._test, len(self._answers))
            assert agrees(recorded) if agrees else answer == recorded, (
                "Spark's connector answers otherwise than it is recorded; if that is right, run `make parity` "
                "(recorded | now):\n" + "\n".join(deviations(recorded, answer))
            )
        self._answers.append(answer)


def deviations(expected: Any, seen: Any, path: str = "") -> list[str]:
    """Where two plain values differ, at most ten places: path, what the connector saw, what this way saw."""
    if type(expected) is type(seen) and isinstance(expected, dict) and expected.keys() == seen.keys():
        found = [deviation for key in expected for deviation in deviations(expected[key], seen[key], f"{path}.{key}")]
    elif type(expected) is type(seen) and isinstance(expected, list | tuple) and len(expected) == len(seen):
        pairs = enumerate(zip(expected, seen, strict=True))
        found = [
            deviation for number, (left, right) in pairs for deviation in deviations(left, right, f"{path}[{number}]")
        ]
    else:
        found = [] if expected == seen else [f"{path}: {expected!r:.600} | {seen!r:.600}"]
    return found[:10]
