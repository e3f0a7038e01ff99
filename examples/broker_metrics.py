"""Metrics as log data: the broker's own numbers go into a topic, and a stream that watches the topic raises alarms.

Here a reader stands still while others write, so its lag grows. Needs nothing but this file: it starts a broker in an empty folder and
removes both at the end.
"""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pylog_spark import start_broker
from pylog_spark.broker.process import Broker
from pylog_spark.client import Admin, Producer
from pylog_spark.client.admin import LATEST
from pylog_spark.testing import spark_session

LIMITS = {"lag": 1_000, "connections": 500, "offline_partitions": 0}


def sample(broker: Broker, admin: Admin, topic: str, group: str) -> dict[str, int]:
    """The broker's counters and gauges, and how far a group is behind the end of a topic."""
    partitions = [(topic, each.partition) for each in admin.topic(topic).partitions]
    ends = {
        (each.topic, each.partition): each.offset for each in admin.offsets([(*place, LATEST) for place in partitions])
    }
    done = admin.group_offsets(group)
    lag = sum(end - done.get(place, 0) for place, end in ends.items())
    offline = sum(each.leader < 0 for each in admin.topic(topic).partitions)
    return {**broker.stats(), "lag": lag, "offline_partitions": offline}


def publish(producer: Producer, number: int, metrics: dict[str, int]) -> None:
    """One record for each metric, by whose name it is keyed: the values of one metric stay in order."""
    for name, value in metrics.items():
        producer.send(json.dumps({"sample": number, "metric": name, "reading": value}).encode(), name.encode())
    producer.flush()


def start_watching(spark: SparkSession, servers: dict[str, str], checkpoint: Path) -> StreamingQuery:
    """Each metric above its limit becomes an alarm, in a topic that any pager can read."""
    limits = spark.createDataFrame(list(LIMITS.items()), "metric string, most long")
    reader = spark.readStream.format("pylog").schema("sample int, metric string, reading long")
    metrics = reader.options(subscribe="metrics", valueFormat="json", startingOffsets="earliest", **servers).load()
    above: DataFrame = metrics.join(limits, "metric").where("reading > most")
    alarms = above.selectExpr("metric AS key", "sample", "metric", "reading", "most")
    # The sink makes JSON of the columns, as the source has read it.
    writer = alarms.writeStream.format("pylog").options(topic="alarms", valueFormat="json", **servers)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def alarms(spark: SparkSession, servers: dict[str, str]) -> list[tuple[int, str, int]]:
    """What the pager has got: sample, metric, reading."""
    reader = spark.read.format("pylog").schema("sample int, metric string, reading long")
    rows = reader.options(subscribe="alarms", valueFormat="json", **servers).load().orderBy("sample").collect()
    return [(row["sample"], row.metric, row.reading) for row in rows]


def main() -> None:
    """Sample while orders are written and a group falls behind, until the alarm is there."""
    spark = spark_session()
    with (
        TemporaryDirectory() as folder,
        start_broker(Path(folder, "data")) as broker,
        Admin(broker.bootstrap_servers) as admin,
    ):
        address = broker.bootstrap_servers
        servers = {"kafka.bootstrap.servers": address}
        for topic in ("orders", "metrics", "alarms"):
            admin.create_topic(topic, 1)
        watching = start_watching(spark, servers, Path(folder, "checkpoint"))
        with Producer(address, "orders") as orders, Producer(address, "metrics") as metrics:
            for number, count in enumerate((400, 400, 400, 400)):
                for _ in range(count):
                    orders.send(b"an order")
                orders.flush()
                if number == 0:  # the billing reads the first orders, and then stands still
                    admin.alter_group_offsets("billing", {("orders", 0): count})
                found = sample(broker, admin, "orders", "billing")
                publish(metrics, number, found)
                print(
                    f"Sample {number}: the lag is {found['lag']}; the broker has answered requests: {found['requests'] > 0}."
                )
        last_s = time.monotonic() + 120
        while not alarms(spark, servers) and watching.isActive and time.monotonic() < last_s:
            time.sleep(0.2)
        watching.stop()
        for number, metric, value in alarms(spark, servers):
            print(f"ALARM of sample {number}: {metric} is {value}, more than {LIMITS[metric]}.")
        assert alarms(spark, servers) == [(3, "lag", 1_200)]
    spark.stop()


if __name__ == "__main__":
    main()
