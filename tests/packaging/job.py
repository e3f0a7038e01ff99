"""A job for ``spark-submit`` whose Python is in an archive: SERVERS TOPIC ROWS. It prints JSON: what it read, and where its tasks found pylog."""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def place(_: int) -> str:
    """Where the Python of this worker has pylog."""
    import pylog_spark

    return pylog_spark.__file__


def main(servers: str, topic: str, rows: int) -> dict[str, Any]:
    """Write numbers by four tasks, read them again."""
    spark = SparkSession.builder.getOrCreate()
    options = {"kafka.bootstrap.servers": servers}
    numbers = spark.range(rows).selectExpr("cast(id as string) as value").repartition(4)
    numbers.write.format("pylog").options(**options, topic=topic).mode("append").save()
    read = spark.read.format("pylog").options(**options, subscribe=topic).load()
    found = read.selectExpr("cast(cast(value as string) as int) as n").selectExpr(
        "count(*)", "count(distinct n)", "sum(n)"
    )
    places = spark.sparkContext.parallelize(range(8), 8).map(place).distinct().collect()
    answer = {"numbers": list(found.first() or ()), "places": places}
    spark.stop()
    return answer


if __name__ == "__main__":
    print("ANSWER", json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
