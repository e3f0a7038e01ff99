"""A Spark driver as a process that is killed: several streaming queries from one topic, each into a topic of its own.

Gets its work as one JSON argument (`Plan`); prints one JSON line for its Java process, then one whenever a query was
started or has failed. A query that failed is started again, as a supervisor would; ends when its standard input ends.

With `batch_rows` it writes a batch into each sink instead, all at once and each under the name of its sink, `batch_times` times,
and ends.
"""

import json
import selectors
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.waiting import happens
from tests.spark_home import JAVA, OUT_OF_THE_WAY

ROOT = str(Path(__file__).parents[2])
STEPS = str(Path(__file__).parent / "steps")
_LOOK_S = 0.05
_START_S = 30.0
_STARTING = ("Initializing", "Getting offsets")


@dataclass(frozen=True)
class Plan:
    """What to run: the topics (`sinks`) into which the topic `source` is copied; checkpoints are folders by sink. Queries that fail
    are started again until the file `last_life` is there. With `log`, processes append to that file what pylog says at level INFO."""

    servers: str
    source: str
    sinks: list[str]
    checkpoints: str
    control: str
    master: str = "local[6,4]"
    per_trigger: int = 40
    last_life: str = ""
    log: str = ""
    batch_rows: int = 0
    batch_times: int = 1
    config: dict[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=lambda: ["key", "value"])
    options: dict[str, str] = field(default_factory=dict)

    def json(self) -> str:
        """For `main`."""
        return json.dumps(asdict(self))

    def environment(self) -> dict[str, str]:
        """What driver and executors need in their environment to stop at steps, and to log."""
        return {"PYTHONPATH": f"{STEPS}:{ROOT}", "PYLOG_STEPS": self.control, "PYLOG_INFO_LOG": self.log}


def session(plan: Plan) -> Any:
    """Spark for a plan."""
    from pylog_spark.testing import spark_session

    executors = {f"spark.executorEnv.{name}": text for name, text in plan.environment().items()}
    settings = {
        "spark.sql.streaming.pollingDelay": "100ms",
        "spark.executor.extraJavaOptions": JAVA,
        "spark.scheduler.mode": "FAIR",
        **OUT_OF_THE_WAY,
        # A task waiting at a step or dying with its worker is the test's doing; it may be tried again at once.
        "spark.excludeOnFailure.enabled": "false",
    }
    spark = spark_session(plan.master, {**settings, **executors, **plan.config}, app_name="pylog sink")
    spark.sparkContext.setLogLevel("OFF")
    return spark


def load(spark: Any, plan: Plan) -> Any:
    """The rows of the source; each query has a reader of its own for them."""
    reader = spark.readStream.format("pylog").option("kafka.bootstrap.servers", plan.servers)
    # A task, and so a transaction, for each partition: batches are small, and some stops are between two transactions.
    reader = reader.options(subscribe=plan.source, startingOffsets="earliest", minRecordsPerPartition="1")
    return reader.options(maxOffsetsPerTrigger=str(plan.per_trigger), **plan.read).load().select(*plan.columns)


def start(rows: Any, plan: Plan, sink: str) -> Any:
    """One query."""
    writer = rows.writeStream.format("pylog").options(topic=sink, **{"kafka.bootstrap.servers": plan.servers})
    writer = writer.options(**plan.options).option("checkpointLocation", str(Path(plan.checkpoints, sink)))
    query = writer.queryName(sink).start()
    # One after the other: Spark gives the Python process of a source 10 s to come up.
    happens(lambda: not (query.isActive and query.status["message"].startswith(_STARTING)), _START_S)
    return query


def write_batch(spark: Any, plan: Plan, sink: str) -> None:
    """One batch that has a name, so that it can be repeated."""
    # Spark looks for data sources in Python only in threads that have an active session.
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    frame = spark.range(plan.batch_rows).selectExpr("CAST(id AS STRING) AS value").repartition(2)
    writer = frame.write.format("pylog").option("kafka.bootstrap.servers", plan.servers).option("topic", sink)
    writer.options(txnAppId=sink, txnVersion="7", **plan.options).mode("append").save()


def write_batches(spark: Any, plan: Plan) -> None:
    """All batches at once."""
    with ThreadPoolExecutor(len(plan.sinks)) as pool:
        report(started=len(plan.sinks))
        for _ in range(plan.batch_times):
            for done in [pool.submit(write_batch, spark, plan, sink) for sink in plan.sinks]:
                done.result()


def main(words: str) -> None:
    """Run until standard input ends."""
    plan = Plan(**json.loads(words))
    spark = session(plan)
    report(java=int(spark._jvm.java.lang.ProcessHandle.current().pid()))
    if plan.batch_rows:
        write_batches(spark, plan)
    else:
        stream(spark, plan)
    spark.stop()


def stream(spark: Any, plan: Plan) -> None:
    """Keep the queries running until standard input ends."""
    rows = load(spark, plan)
    queries = {sink: start(rows, plan, sink) for sink in plan.sinks}
    report(started=len(queries))
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        while not selector.select(_LOOK_S):
            for sink, query in list(queries.items()):
                if not query.isActive:
                    report(failed=sink, why=str(query.exception()))
                    del queries[sink]
                    if not (plan.last_life and Path(plan.last_life).exists()):
                        queries[sink] = start(rows, plan, sink)
    for query in queries.values():
        query.stop()


def report(**what: Any) -> None:
    """One line."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
