"""Executors as processes of their own: nothing may lean on sharing a process with the driver."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.support import Topic

PROGRAM = """
from pylog_spark.testing import spark_session

servers, source, sink, checkpoint = {arguments!r}
spark = spark_session("local-cluster[2,1,1024]", {{"spark.executorEnv.PYTHONPATH": {root!r}}})
brokers = {{"kafka.bootstrap.servers": servers}}
frame = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value").repartition(4)
frame.write.format("pylog").options(topic=source, **brokers).mode("append").save()

stream = spark.readStream.format("pylog").options(subscribe=source, startingOffsets="earliest", **brokers).load()
writer = stream.selectExpr("key", "value").writeStream.format("pylog").options(topic=sink, **brokers)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()

batch = spark.read.format("pylog").options(subscribe=sink, **brokers).load()
row = batch.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n").selectExpr("count(*)", "count(DISTINCT n)", "sum(n)").first()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print("result", executors, *row)
spark.stop()
"""


@pytest.mark.slow
def test_batch_and_stream_work_over_executors_in_processes_of_their_own(
    topic: Callable[..., Topic], checkpoint: str
) -> None:
    source, sink = topic(partitions=3), topic(partitions=2)
    root = str(Path(__file__).parents[2])
    program = PROGRAM.format(arguments=(source.servers, source.name, sink.name, checkpoint), root=root)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=200, check=False
    )
    assert "result 2 1000 1000 499500" in done.stdout, done.stderr[-3000:]
