"""Activity of a web site: three front-end processes write page views and searches into topics of their own, while a stream counts.

Each front end counts what it has written, too, and at the end an audit says whether the log has it all. Needs nothing but this
file: it starts a broker in an empty folder and removes both at the end.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pylog_spark import start_broker
from pylog_spark.audit import check
from pylog_spark.client import Admin
from pylog_spark.testing import spark_session

FRONT_ENDS = ("berlin", "oslo", "lima")
USERS = 1000  # of each front end; one looks at three pages and searches once

#: A front end is a process of its own. Keys are users, so what one user does stays in order.
FRONT_END = """
import json, sys
from pylog_spark.audit import Audit
from pylog_spark.client import Producer

servers, place, users = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings, audit = {"client.id": place}, Audit("audit")
with Producer(servers, "page-views", settings, audit) as views, Producer(servers, "searches", settings, audit) as searches:
    for user in range(users):
        key = f"{place}-{user}".encode()
        for page in ("/", "/jobs", f"/profile/{user % 5}"):
            views.send(json.dumps({"page": page, "place": place}).encode(), key)
        searches.send(json.dumps({"words": "spark jobs", "place": place}).encode(), key)
"""


def start_counting(spark: SparkSession, servers: dict[str, str], folder: str) -> StreamingQuery:
    """Views of each page, so far; the table `counts` always has the newest ones."""
    reader = spark.readStream.format("pylog").schema("page string, place string")
    views = reader.options(subscribe="page-views", valueFormat="json", startingOffsets="earliest", **servers).load()
    counts = views.groupBy("page").count()
    writer = counts.writeStream.format("memory").queryName("counts").outputMode("complete")
    return writer.option("checkpointLocation", str(Path(folder, "checkpoint"))).start()


def views_so_far(spark: SparkSession) -> int:
    """All views that the stream has counted."""
    return sum(row["count"] for row in spark.table("counts").collect())


def main() -> None:
    """Count while three processes write, until all is counted; then look whether all is there."""
    spark = spark_session()
    with TemporaryDirectory() as folder, start_broker(Path(folder, "data"), num_partitions=2) as broker:
        address = broker.bootstrap_servers
        with Admin(address) as admin:
            for topic in ("page-views", "searches", "audit"):
                admin.create_topic(topic)
        counting = start_counting(spark, {"kafka.bootstrap.servers": address}, folder)

        command = [sys.executable, "-c", FRONT_END, address]
        front_ends = [subprocess.Popen([*command, place, str(USERS)]) for place in FRONT_ENDS]
        print(f"{len(front_ends)} front ends write.")
        expected, seen, last_s = 3 * USERS * len(FRONT_ENDS), 0, time.monotonic() + 120
        while seen < expected and counting.isActive and time.monotonic() < last_s:
            time.sleep(0.2)
            seen = views_so_far(spark)
        print(f"All of them ended well: {all(front_end.wait() == 0 for front_end in front_ends)}.")
        for row in spark.table("counts").orderBy("page").collect():
            print(f"{row['count']:>6}  {row.page}")
        counting.stop()

        # None: compare also the window that has not ended; nobody writes any more.
        report = check(address, "audit", delay_ms=None)
        print(f"The front ends say that they wrote {report.records} records; {len(report.differences)} windows differ.")
        assert (seen, report.records) == (expected, expected + USERS * len(FRONT_ENDS))
    spark.stop()


if __name__ == "__main__":
    main()
