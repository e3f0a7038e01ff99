"""Executors as processes of their own: nothing may lean on sharing a process, a folder or an import path with the driver.

Long; in `make test` executors of their own run in ``tests/crash/test_sink.py``."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]

SESSION = """
import os, signal
from pylog_spark.testing import spark_session

servers, source, sink, folder, python_path = {arguments!r}
config = {{"spark.task.maxFailures": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "50"}}
if python_path:
    config["spark.executorEnv.PYTHONPATH"] = python_path
spark = spark_session("local-cluster[2,1,1024]", config)
brokers = {{"kafka.bootstrap.servers": servers}}


def look_around(_):
    import pylog_spark
    return os.getcwd(), pylog_spark.__file__


seen = spark.sparkContext.parallelize(range(4), 4).map(look_around).collect()
print("folders differ", all(place != os.getcwd() for place, _ in seen))
print("imported from", *sorted(set(os.path.dirname(os.path.dirname(file)) for _, file in seen)))
frame = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value").repartition(4)


def stream(frame_of=lambda frame: frame.select("key", "value"), **options):
    rows = spark.readStream.format("pylog").options(subscribe=source, startingOffsets="earliest", **brokers).load()
    writer = frame_of(rows).writeStream.format("pylog").options(topic=sink, **brokers, **options)
    query = writer.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()


def numbers():
    batch = spark.read.format("pylog").options(subscribe=sink, **brokers).load()
    row = batch.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n")
    return row.selectExpr("count(*)", "count(DISTINCT n)", "coalesce(sum(n), 0)").first()
"""

COPY = """
frame.write.format("pylog").options(topic=source, **brokers).mode("append").save()
stream()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("result", executors, *numbers())
spark.stop()
"""

# The function runs in a Python worker, a child of the daemon, a child of the executor.
KILL = """
def kill_once(batches):
    for number, batch in enumerate(batches):
        yield batch
        if number == 1:
            try:
                os.close(os.open(folder + "/killed", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            with open(f"/proc/{os.getppid()}/stat") as stat:
                os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)


frame.write.format("pylog").options(topic=source, **brokers).mode("append").save()
stream(lambda rows: rows.select("key", "value").mapInArrow(kill_once, "key binary, value binary"))
print("killed", os.path.exists(folder + "/killed"))
print("result", *numbers())
spark.stop()
"""


def run(program: str, arguments: tuple[str, ...], folder: Path) -> str:
    """What the program prints, run in a folder of its own, in which nothing can be imported."""
    folder.mkdir()
    text = SESSION.format(arguments=arguments) + program
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.long
def test_batch_and_stream_work_where_executors_find_pylog_by_python_path(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=2)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "pylog_spark").symlink_to(ROOT / "pylog_spark")
    (copy / "pyspark_pylog").symlink_to(ROOT / "pyspark_pylog")
    arguments = (source.servers, source.name, sink.name, str(tmp_path), str(copy))
    said = run(COPY, arguments, tmp_path / "run")
    assert "folders differ True" in said
    assert f"imported from {copy}\n" in said
    assert "result 2 1000 1000 499500" in said


@pytest.mark.long
def test_every_row_is_there_once_when_an_executor_is_killed_in_the_middle_of_its_task(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=2)
    said = run(KILL, (source.servers, source.name, sink.name, str(tmp_path), ""), tmp_path / "run")
    assert f"imported from {ROOT}\n" in said
    assert "killed True" in said
    assert "result 1000 1000 499500" in said
