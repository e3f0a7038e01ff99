"""One attempt at a task whose bad records go to a topic, as a process of its own that says when it begins to read.

It is told the servers, the topic, and the topic of bad records.
"""

import sys

from pyspark.sql.types import IntegerType

from pylog_spark.datasource import PylogDataSource
from tests.typed.support import schema


def main(servers: str, topic: str, bad: str) -> None:
    """Read all of the topic."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "valueFormat": "json", "badRecordsTopic": bad}
    reader = PylogDataSource(options).reader(schema(id=IntegerType()))
    tasks = reader.partitions()
    print("ready", flush=True)
    sys.stdin.readline()
    for task in tasks:
        for _ in reader.read(task):
            pass
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
