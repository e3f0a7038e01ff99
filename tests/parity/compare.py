"""Runs a scenario on all ways and compares what it saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.parity.differences import DIFFERENCES
from tests.parity.refusals import REFUSALS, conditions_in
from tests.parity.ways import Way

Scenario = Callable[[Way], Any]


@dataclass
class Ways:
    """The three ways of one test; Spark's connector is the first."""

    all: Sequence[Way]

    @property
    def connector(self) -> Way:
        """Spark's connector on Apache Kafka."""
        return self.all[0]

    @property
    def ours(self) -> Sequence[Way]:
        """pylog on Apache Kafka and on pylog."""
        return self.all[1:]

    def same(self, scenario: Scenario) -> Any:
        """What the connector saw, which is what the others must see; to be looked at by the test."""
        expected, *others = [way.plain(scenario(way)) for way in self.all]
        for way, seen in zip(self.ours, others, strict=True):
            assert seen == expected, f"{way.label} differs:\n" + "\n".join(deviations(expected, seen))
        return expected

    def differ(self, difference: str, scenario: Scenario) -> tuple[Any, Any]:
        """What the connector saw and what pylog saw, the same on both brokers; they must differ, as `differences` says."""
        assert difference in DIFFERENCES
        expected, *others = [way.plain(scenario(way)) for way in self.all]
        first, second = others
        assert first == second, "pylog sees one thing on Apache Kafka and another on its own broker"
        assert first != expected, f"{difference!r} is no difference any more: take it from the list"
        return expected, first

    def refused(self, situation: str, scenario: Scenario) -> None:
        """All ways refuse, each by its own name of the situation (`refusals`)."""
        assert situation in REFUSALS
        for way in self.all:
            with pytest.raises(Exception) as caught:  # Spark's, of many classes; the condition is what counts
                scenario(way)
            text = str(caught.value)
            found = conditions_in(text, way.is_connector)
            assert situation in found, f"{way.label} says otherwise ({found or 'nothing known'}):\n{text[:3000]}"


def deviations(expected: Any, seen: Any, path: str = "") -> list[str]:
    """Where two plain values differ, at most ten places: path, what the connector saw, what this way saw."""
    if type(expected) is type(seen) and isinstance(expected, dict) and expected.keys() == seen.keys():
        found = [one for key in expected for one in deviations(expected[key], seen[key], f"{path}.{key}")]
    elif type(expected) is type(seen) and isinstance(expected, list | tuple) and len(expected) == len(seen):
        pairs = enumerate(zip(expected, seen, strict=True))
        found = [one for number, (left, right) in pairs for one in deviations(left, right, f"{path}[{number}]")]
    else:
        found = [] if expected == seen else [f"{path}: {expected!r:.600} | {seen!r:.600}"]
    return found[:10]
