"""A job that was written for Spark's Kafka connector. One word is new; what each option means here stands beside it.

Needs nothing but this file, and no JAR: it starts a broker in an empty folder and removes both at the end. Apache Kafka's address
would do as well. With "kafka" as the word and the connector's JAR in the session it is the job of before.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.errors import PySparkException

from pylog_spark import start_broker
from pylog_spark.testing import spark_session

WORD = "pylog"  # It was "kafka".

READ = {
    "subscribe": "orders",  # the same; so are `subscribePattern` and `assign`
    "startingOffsets": "earliest",  # the same words and JSON; and "-10 minutes", "-1000 offsets"
    "maxOffsetsPerTrigger": "300",  # the same; and `maxRecordsPerTrigger`, `maxBytesPerTrigger`
    "failOnDataLoss": "true",  # the same
    "includeHeaders": "true",  # the same
    "minPartitions": "4",  # the same
    "kafka.fetch.max.wait.ms": "100",  # settings of Kafka's client have their names, and are obeyed
    "kafka.isolation.level": "read_committed",  # the default here; the connector reads aborted records without it
    "kafka.group.id": "audit",  # the query's progress is committed there, too, so that Kafka's tools show its lag
}
WRITE = {
    "topic": "audited-orders",  # the same; without it the column `topic` says where
    "kafka.acks": "all",  # the same
    "kafka.compression.type": "lz4",  # the same
    # New are `delivery` ("exactly-once", the default, or "at-least-once", as the connector writes), `txnAppId`, `txnVersion`.
}


def main() -> None:
    """Write orders, stream them into another topic, read that."""
    spark = spark_session()
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data"), num_partitions=2) as broker:
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}  # the same

        orders = spark.range(1000).selectExpr("string(id % 7) as key", "to_json(struct(id)) as value")
        # `mode` must be said: Spark refuses its own default for sources that are written in Python.
        orders.write.format(WORD).options(topic="orders", **servers).mode("append").save()

        stream = spark.readStream.format(WORD).options(**READ, **servers).load()
        audited = stream.selectExpr("key", "concat(string(value), ' at ', partition, ':', offset) as value")
        # A checkpoint of the connector's may stay: pylog goes on where it stopped.
        writer = audited.writeStream.format(WORD).options(**WRITE, **servers)
        writer = writer.option("checkpointLocation", str(Path(folder, "checkpoint"))).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        print(
            f"Streamed {sum(progress['numInputRows'] for progress in query.recentProgress)} rows of {stream.columns}."
        )

        result = spark.read.format(WORD).options(subscribe="audited-orders", **servers).load()
        print(
            f"'audited-orders' has {result.count()} rows, {result.select('value').distinct().count()} different ones."
        )

        try:
            spark.read.format(WORD).options(subscribe="orders", startingOffset="latest", **servers).load().count()
            print("A misspelt option is ignored.")
        except PySparkException as error:
            print("A misspelt option is an error:", *(line for line in str(error).splitlines() if "PYLOG_" in line))
    spark.stop()


if __name__ == "__main__":
    main()
