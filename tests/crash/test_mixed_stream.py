"""Exactly once, in order, in a stream whose micro-batches are now small, now large, under kill -9 of driver, Python workers and broker.

The driver reads the small ones and tasks read the large ones (`pylog_spark/source/prefetch.py`); kills fall at random moments of both.
A round has five kills, of which one is the driver's: 5 in a long run, 1 where the file is run by itself. In `make test` the kills are those of
`test_sink`, at every step of the sink, and both ways to read are in ``tests/reading``.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.mixed_bench import MixedBench
from tests.harness.runs import rounds, seed

ROUNDS = rounds("PYLOG_MIXED_ROUNDS", 1, 5)
SEED = seed("PYLOG_MIXED_SEED")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(120 + 180 * ROUNDS)
def test_each_row_of_small_and_large_micro_batches_is_there_once_and_in_order_though_all_are_killed(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}: set PYLOG_MIXED_SEED to repeat")
    randomness = random.Random(SEED)
    bench = MixedBench(tmp_path, randomness)
    kills = 0
    try:
        bench.push(1)
        bench.driver.start()
        bench.catch_up()
        for _ in range(ROUNDS):
            both = [(victim, is_burst) for victim in ("worker", "broker") for is_burst in (False, True)]
            strikes = [*both, ("driver", randomness.random() < 0.5)]
            randomness.shuffle(strikes)
            for victim, is_burst in strikes:
                bench.strike(victim, is_burst)
            kills += len(strikes)
        bench.driver.stop()
        bench.check()
    finally:
        bench.close()
    reads = bench.reads()
    counts = {way: len(ranges) for way, ranges in reads.items()}
    both_ways = len(reads["driver"] & reads["tasks"])
    print(
        f"micro-batches read by {counts}, {both_ways} of them in both ways; {bench.bitten} of {kills} kills fell on one"
    )
    assert min(counts.values()) >= ROUNDS, counts
    assert bench.bitten > 0
