"""Where a read begins and ends by time: three options on each side, their order, and what happens without a match."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.ways import BASE_MS, Record, Way, stream

FIRST, SECOND, THIRD, LAST = (BASE_MS + 1_000 * n for n in range(4))
NEVER = 2**62


def timed(way: Way) -> None:
    """Values 0 to 29 over three partitions by remainder; ten each at three times."""
    way.topic("t", 3)
    for partition in range(3):
        values = [n for n in range(30) if n % 3 == partition]
        way.put("t", [Record(f"{n}", None, (FIRST, SECOND, THIRD)[n // 10]) for n in values], partition)


def each(*times: int) -> dict[str, dict[str, int]]:
    """JSON of the topic's three partitions; one number stands for all."""
    return {"t": {str(n): times[n % len(times)] for n in range(3)}}


CASES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "times on both sides": (
        {"startingOffsetsByTimestamp": each(SECOND), "endingOffsetsByTimestamp": each(THIRD)},
        [*range(10, 20)],
    ),
    "a time and offsets": (
        {"startingOffsetsByTimestamp": each(FIRST), "endingOffsets": each(-1, -1, 1)},
        [n for n in range(30) if n % 3 != 2 or n == 2],
    ),
    "offsets and a time": (
        {"startingOffsets": each(-2, -2, 0), "endingOffsetsByTimestamp": each(THIRD)},
        [*range(20)],
    ),
    "only a starting time": ({"startingOffsetsByTimestamp": each(SECOND)}, [*range(10, 30)]),
    "only an ending time": ({"endingOffsetsByTimestamp": each(THIRD)}, [*range(20)]),
    "one time for all on both sides": ({"startingTimestamp": SECOND, "endingTimestamp": THIRD}, [*range(10, 20)]),
    "between two times": ({"startingTimestamp": FIRST + 1, "endingTimestamp": SECOND + 1}, [*range(10, 20)]),
    "one time wins over times over offsets": (
        {"startingTimestamp": THIRD, "startingOffsetsByTimestamp": each(SECOND), "startingOffsets": "earliest"},
        [*range(20, 30)],
    ),
    "times win over offsets": (
        {"startingOffsetsByTimestamp": each(SECOND), "startingOffsets": "earliest"},
        [*range(10, 30)],
    ),
    "an end without a match is the end": (
        {"endingOffsetsByTimestamp": each(SECOND, SECOND, NEVER)},
        [*range(10), *(n for n in range(10, 30) if n % 3 == 2)],
    ),
    "a start without a match is the end when the strategy is latest": (
        {"startingOffsetsByTimestamp": each(SECOND, SECOND, NEVER), "startingOffsetsByTimestampStrategy": "latest"},
        [n for n in range(10, 30) if n % 3 != 2],
    ),
    "the strategy in any case": (
        {"startingTimestamp": NEVER, "startingOffsetsByTimestampStrategy": "LATEST"},
        [],
    ),
}


def options_of(way: Way, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a case, JSON with the way's topic names."""
    return {name: way.json(value) if isinstance(value, dict) else value for name, value in given.items()}


def test_times_choose_the_same_rows_in_a_batch(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        timed(way)
        return {name: way.read(**options_of(way, given)) for name, (given, _) in CASES.items()}

    seen = ways.same(scenario)
    for name, (_, expected) in CASES.items():
        assert sorted(int(row[-1]) for row in seen[name]) == expected, name


@pytest.mark.long  # of a batch: above
def test_times_choose_the_same_start_of_a_stream(ways: Ways) -> None:
    def scenario(way: Way) -> object:
        timed(way)
        cases = {
            "times": {"startingOffsetsByTimestamp": each(SECOND, THIRD, FIRST)},
            "latest": {
                "startingOffsetsByTimestamp": each(SECOND, NEVER, THIRD),
                "startingOffsetsByTimestampStrategy": "latest",
            },
        }
        return {name: stream(way, name, **options_of(way, given)) for name, given in cases.items()}

    seen = ways.same(scenario)
    (batch,) = seen["times"]
    assert batch[2] == 6 + 3 + 10


@pytest.mark.parametrize("strategy", [None, "error"])
@pytest.mark.parametrize("option", ["startingOffsetsByTimestamp", "startingTimestamp"])
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_a_start_without_a_match_is_refused(ways: Ways, kind: str, option: str, strategy: str | None) -> None:
    def scenario(way: Way) -> None:
        timed(way)
        start = {option: each(SECOND, SECOND, NEVER) if option.endswith("ByTimestamp") else THIRD + 1}
        options = options_of(way, {**start, "startingOffsetsByTimestampStrategy": strategy})
        if kind == "batch":
            way.read(**options)
        else:
            stream(way, **options)

    ways.refused("no record at or after the starting time", scenario)
