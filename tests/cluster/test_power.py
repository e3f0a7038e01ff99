"""All machines lose power at once: what `durability` promises then, for records that all replicas have acknowledged.

One machine at a time is among the faults of `test_chaos.py`, in every run: that costs nothing with either setting.
"""

import time
from pathlib import Path

import pytest

from pylog_spark.testing import ZooKeeper
from tests.cluster.rounds import await_records
from tests.cluster.running import judge, running
from tests.harness.bench import Bench

PLACES = [("t", 0), ("t", 1)]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("durability", ["flushed", "page-cache"])
def test_acknowledged_records_survive_a_black_out_if_they_were_flushed_and_only_then(
    worker_zookeeper: ZooKeeper, tmp_path: Path, durability: str
) -> None:
    with Bench(tmp_path, worker_zookeeper) as bench:
        bench.make_topic("t", len(PLACES), min_insync_replicas=2, durability=durability)
        # A reader would fail because the log was cut.
        with running(bench, PLACES, read=durability == "flushed") as history:
            await_records(history, PLACES)
            await_records(history, PLACES, time.monotonic())
            bench.black_out()
            bench.heal()
            await_records(history, PLACES, time.monotonic())
        found = judge(bench, history, PLACES)
    if durability == "flushed":
        assert found == []
    else:
        # Sends that were acknowledged and are not there: the black-out has a consequence, and the checker sees it.
        assert any(sentence.startswith(("lost write", "unseen")) for sentence in found), found
