"""Small micro-batches that the driver reads (`pylog_spark.source.prefetch`), in Spark itself; `tests/reading` has the rest."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pylog_spark.client import Admin, Producer
from pylog_spark.testing import LocalBroker
from tests import spark_home
from tests.spark.support import Topic
from tests.spark.test_versions import patch_releases, table
from tests.spark.versions.environment import python_with_spark

ROOT = Path(__file__).parents[2]
ROWS = 90


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker whose topic "rows" has three partitions with `ROWS` records in all."""
    with LocalBroker(tmp_path_factory.mktemp("rows") / "data") as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("rows", 3)
        with Producer(broker.bootstrap_servers, "rows") as producer:
            for number in range(ROWS):
                producer.send(b"%d" % number)
            assert producer.flush().records == ROWS
        yield broker.bootstrap_servers


def outcomes(python: str, servers: str, **environment: str | None) -> list[str]:
    """What comes of a query of the driver and of one of the tasks, which have no Python workers."""
    given = {name: text for name, text in {**os.environ, **environment}.items() if text is not None}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-m", "tests.spark.prefetch_driver", servers, folder, "1m", "0"],
            cwd=folder,
            env={**given, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("read", "failed"))]
    assert len(lines) == 2, done.stdout + done.stderr[-4000:]
    return lines


@pytest.mark.long  # a driver of its own; that rows of the driver are read is below and in tests/reading
@pytest.mark.timeout(300)
def test_a_small_batch_of_the_driver_is_read_where_tasks_can_have_no_python_worker(rows: str) -> None:
    assert outcomes(sys.executable, rows) == [f"read {ROWS}", "failed"]


@pytest.mark.long
@pytest.mark.timeout(900)  # the first run of all installs an older Spark
@pytest.mark.parametrize("version", sorted(table())[:-1])
def test_older_versions_of_spark_take_rows_of_the_driver_too(version: str, rows: str) -> None:
    python = str(python_with_spark(patch_releases()[version]))
    of_python = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    home = {"SPARK_HOME": None, "SPARK_SUBMIT_OPTS": spark_home.JAVA}
    assert outcomes(python, rows, **of_python, **home) == [f"read {ROWS}", "failed"]


@pytest.mark.long  # Spark's own doing
def test_spark_frees_the_rows_of_finished_batches(spark: Any, make_topic: Callable[..., Topic], tmp_path: Path) -> None:
    topic = make_topic(partitions=1)
    rounds, size = 30, 400_000
    for number in range(rounds):
        topic.put([b"%d" % number + bytes(size)], 0)
    options = {"subscribe": topic.name, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1"}
    stream = spark.readStream.format("pylog").options(**{"kafka.bootstrap.servers": topic.servers, **options}).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    tracker = spark.sparkContext._jsc.sc().statusTracker()

    def kept() -> int:
        return sum(int(executor.usedOnHeapStorageMemory()) for executor in tracker.getExecutorInfos())

    before = kept()
    started = query.start()
    assert started.awaitTermination(120)
    batches = [progress for progress in started.recentProgress if progress["numInputRows"]]
    assert len(batches) == rounds
    # One batch may still be there, and Spark's own broadcasts of some kilobytes each.
    assert kept() - before < rounds * size / 4
