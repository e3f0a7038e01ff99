"""Each record is in the table once, for readers of Delta too, though the driver is killed at every step between writing files and Spark's own commit.

A life is one kill; all lives load into one table, and a load that is not killed ends. One life in `make test`, at a step that differs from
commit to commit, each step several times in a long run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from pylog_spark import lakehouse
from tests.harness.runs import rounds, seed
from tests.lakehouse.load_driver import MANY, PER_BATCH, SCHEMA, STEPS
from tests.spark.support import Topic

pytestmark = pytest.mark.long  # a batch that runs again: test_parquet.py

LIVES = rounds("PYLOG_LAKE_LIVES", 1, 25)
_ROWS = 100


def live(topic: Topic, table: str, step: str, times: int) -> None:
    """Load until the driver dies at a step."""
    plan = {"servers": topic.servers, "topic": topic.name, "table": table, "step": step, "times": times}
    command = [sys.executable, "-m", "tests.lakehouse.load_driver", json.dumps(plan)]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == -signal.SIGKILL, f"{step} was not reached {times} times:\n{done.stderr[-4000:]}"


@pytest.mark.slow
@pytest.mark.timeout(300 + 40 * LIVES)
def test_each_record_is_in_the_table_once_though_the_driver_is_killed_at_every_step(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    table = str(tmp_path / "table")
    chance = random.Random(seed("PYLOG_LAKE_SEED"))
    steps = [*STEPS] * (LIVES // len(STEPS) + 1)
    chance.shuffle(steps)
    for life, step in enumerate(steps[:LIVES]):
        for partition in range(2):
            topic.put([f'{{"id": {life * _ROWS + number}}}' for number in range(_ROWS)], partition)
        # What a life has to load is enough for so many batches, and merges.
        times = chance.randint(1, 2 * _ROWS // PER_BATCH // (2 * MANY))
        live(topic, table, step, times)
    to_the_end = {"subscribe": topic.name, "kafka.bootstrap.servers": topic.servers}
    lakehouse.load(topic.spark, table, schema=SCHEMA, partition_by=["partition"], table_format="delta", **to_the_end)
    found: list[Any] = lakehouse.read(topic.spark, table).select("partition", "offset", "id").collect()
    expected = [(partition, offset, offset) for partition in range(2) for offset in range(LIVES * _ROWS)]
    assert sorted(map(tuple, found)) == expected
    by_delta = deltalake.DeltaTable(table).to_pyarrow_table(columns=["partition", "offset", "id"]).to_pylist()
    assert sorted(tuple(row.values()) for row in by_delta) == expected
