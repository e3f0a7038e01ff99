"""As `secrets_driver`, by Spark Connect, whose server keeps the text of each statement: with the setting that hides it.

Run as ``python -m tests.spark.secrets_connect SERVERS TOPIC FOLDER PLACE REGEX``, with a `secrets_logins.Place` as JSON.
"""

import json
import sys
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

from pylog_spark.testing.process import free_port
from tests.spark.secrets_driver import SECRETS, Kept
from tests.spark.secrets_logins import RIGHT, WRONG, Place


def main(servers: str, topic: str, folder: Path, place: Place, regex: str) -> None:
    """Read and write, also with a login; be refused."""
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

    def log_in(password: str) -> int:
        reading = spark.read.format("pylog").options(**place.by_password(password), subscribe=place.topic)
        return reading.load().count()

    assert log_in(RIGHT) > 0
    Kept(folder).failure("error-login", lambda: log_in(WRONG), "refused the login")
    for number, page in enumerate(("/connect/", "/SQL/", "/jobs/")):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}") as answer:
            (folder / f"page-{number}.txt").write_text(answer.read().decode())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Place(**json.loads(sys.argv[4])), sys.argv[5])
