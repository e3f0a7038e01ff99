"""kill -9 of the broker under load, many times over the same data: what was acknowledged is there, once, in order.

A kill proves nothing about power loss (the page cache survives it); that is the simulated disk's business, in the engine's own
tests. 8 rounds in `make test`, 50 in a long run, 1,000 by `make crash`.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pylog_spark.testing import LocalBroker
from tests.crash.numbered import NumberedRecords
from tests.harness.runs import rounds, seed
from tests.harness.waiting import turns, until

ROUNDS = rounds("PYLOG_CRASH_ROUNDS", 8, 50)
SEED = seed("PYLOG_CRASH_SEED")
PARTITIONS = 2
_ROUND_DEADLINE_S = 60
# A burst takes about a ms to be sent and answered: a kill somewhere in this time finds requests on their way.
_LAST_BURST_S = 0.0015
# Answers that a broker had sent before it stood still are taken within this time.
_LAST_ANSWERS_S = 0.02
# Small, so that kills also fall on rolls, index growth and recovery of several segments.
_SETTINGS = {"log_segment_bytes": 2_000_000, "log_index_interval_bytes": 1_000, "num_partitions": PARTITIONS}


@pytest.mark.timeout(120 + 5 * ROUNDS)
def test_every_acknowledged_record_survives_kill_9_under_load_once_and_in_order(tmp_path: Path) -> None:
    randomness = random.Random(SEED)
    print(f"seed {SEED}: set PYLOG_CRASH_SEED to repeat")
    broker = LocalBroker(tmp_path, **_SETTINGS)
    bitten = 0
    try:
        broker.start()
        load = NumberedRecords(broker.bootstrap_servers, PARTITIONS)
        # Both producers have made their topics: a reader of one that is not there yet is refused.
        _push_until(load, lambda: all(each.acknowledged_ever > 0 for each in (*load.idempotent, *load.plain)))
        for _ in range(ROUNDS):
            enough = load.acknowledged + randomness.randrange(50, 6_000)
            _push_until(load, lambda enough=enough: load.acknowledged >= enough)
            _stop_with_requests_under_way(broker, load, randomness)
            cut_off = load.cut_off
            broker.kill()
            load.broker_died()
            bitten += load.cut_off > cut_off
            broker.start()
            load.check()
        load.finish()
        load.check()
    finally:
        broker.close()
    print(f"{bitten} of {ROUNDS} kills cut off requests on their way, {load.cut_off} plain records in all")
    assert bitten > ROUNDS / 4, f"only {bitten} of {ROUNDS} kills cut off requests that were on their way"
    assert all(partition.next_offset > ROUNDS * 10 for partition in (*load.idempotent, *load.plain))


def _stop_with_requests_under_way(broker: LocalBroker, load: NumberedRecords, randomness: random.Random) -> None:
    """Let the broker stand still at a moment at which plain records wait for its answer: it does nothing more until it is killed,
    so where it stands is where the kill falls, whatever else the machine is doing."""

    def stands_still() -> bool:
        load.push(poll_s=randomness.random() * _LAST_BURST_S)
        broker.pause()
        if load.unanswered(_LAST_ANSWERS_S):
            return True
        broker.resume()
        return False

    until(stands_still, "plain records wait for the broker's answer", _ROUND_DEADLINE_S, pause_s=0)


def _push_until(load: NumberedRecords, enough: Callable[[], bool]) -> None:
    for _ in turns(enough, lambda: f"enough is acknowledged: {load.acknowledged} records", _ROUND_DEADLINE_S):
        load.push(poll_s=0.001)
