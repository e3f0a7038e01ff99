"""As `secrets_driver`, by Spark Connect, whose server keeps the text of each statement: with the setting that hides it.

Run as ``python -m tests.spark.secrets_connect SERVERS TOPIC FOLDER REGEX``.
"""

import sys
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

from pylog_spark.testing.process import free_port
from tests.spark.secrets_driver import SECRETS


def main(servers: str, topic: str, folder: Path, regex: str) -> None:
    """Read and write."""
    events = folder / "events"
    events.mkdir()
    port = free_port()
    config = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.redaction.string.regex": regex,
    }
    builder = SparkSession.builder.remote("local[2]")
    for name, text in config.items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    given = {"kafka.bootstrap.servers": servers, **SECRETS}
    frame = spark.read.format("pylog").options(**given, subscribe=topic).load()
    assert frame.count() > 0
    frame.select("value").write.format("pylog").options(**given, topic=topic).mode("append").save()
    frame.explain(True)
    for number, page in enumerate(("/connect/", "/SQL/", "/jobs/")):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}") as answer:
            (folder / f"page-{number}.txt").write_text(answer.read().decode())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
