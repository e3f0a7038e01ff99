"""A driver of Spark that reads and writes with planted secrets in its options, and keeps all that Spark shows of it: one file each.

Run as ``python -m tests.spark.secrets_driver SERVERS TOPIC FOLDER PLACE``, with a `secrets_logins.Place` as JSON; its own output is
Spark's log.
"""

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pylog_spark.testing.spark import spark_session
from tests.spark.secrets_logins import PLANTED, Place, log_in

#: Without a login: the brokers never ask for them.
SECRETS = {
    "kafka.sasl.jaas.config": f'x.PlainLoginModule required username="u" password="{PLANTED}-1";',
    "kafka.sasl.username": "u",
    "kafka.sasl.password": f"{PLANTED}-2",
    "kafka.ssl.truststore.password": f"{PLANTED}-3",
    "kafka.ssl.keystore.password": f"{PLANTED}-4",
    "kafka.ssl.key.password": f"{PLANTED}-5",
    "kafka.ssl.keystore.key": f"secret\n-----BEGIN PRIVATE KEY-----\n{PLANTED}-6\n-----END PRIVATE KEY-----",
    "kafka.ssl.key.pem": f"# Secret.\n-----BEGIN EC PRIVATE KEY-----\n{PLANTED}-7\n-----END EC PRIVATE KEY-----",
    "kafka.sasl.oauthbearer.client.credentials.client.secret": f"{PLANTED}-9",
    "kafka.sasl.oauthbearer.token.provider.config": f"{PLANTED}-10",
}
_MODES = ("simple", "extended", "codegen", "cost", "formatted")
_PAGES = (
    "/jobs/", "/stages/", "/storage/", "/environment/", "/executors/", "/SQL/", "/StreamingQuery/",
    "/api/v1/applications/{app}/sql?details=true&planDescription=true&length=100", "/api/v1/applications/{app}/environment",
    "/api/v1/applications/{app}/jobs", "/api/v1/applications/{app}/stages?details=true",
)  # fmt: skip


class Kept:
    """Texts in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, text: object) -> None:
        """Keep a text."""
        (self._folder / f"{name}.txt").write_text(str(text))

    def plan(self, name: str, frame: Any) -> None:
        """Keep all that a frame's plans show."""
        execution = frame._jdf.queryExecution()
        utils = frame.sparkSession._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
        for mode in _MODES:
            self.put(f"{name}-{mode}", utils.explainString(execution, mode))
        self.put(f"{name}-execution", execution.toString())
        self.put(f"{name}-repr", repr(frame))

    def failure(self, name: str, run: Callable[[], object], *parts: str) -> None:
        """Keep the text of an error that must come, with `parts` in it."""
        try:
            run()
        except Exception as error:  # its text is what is looked at
            self.put(name, f"{error}\n{error!r}")
            if not all(part in str(error) for part in parts):
                raise
        else:
            raise AssertionError(f"{name} was no error")


def main(servers: str, topic: str, folder: Path, place: Place) -> None:
    """Read, write, stream, fail."""
    kept = Kept(folder)
    events = folder / "events"
    events.mkdir()
    config = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        # A worker that is used again keeps its connection, so that its tasks would not log in, nor be refused.
        "spark.python.worker.reuse": "false",
    }
    spark = spark_session(config=config)
    spark.sparkContext.setLogLevel("INFO")
    given = {"kafka.bootstrap.servers": servers, **SECRETS}

    def read(**options: str) -> Any:
        return spark.read.format("pylog").options(**given, subscribe=topic).options(**options).load()

    def write(frame: Any) -> None:
        frame.select("value").write.format("pylog").options(**given, topic=topic).mode("append").save()

    frame = read()
    kept.plan("read", frame)
    assert frame.count() > 0
    write(frame)
    streamed = spark.readStream.format("pylog").options(**given, subscribe=topic, startingOffsets="earliest").load()
    kept.put("stream-repr", repr(streamed))
    query = (
        streamed.select("value").writeStream.format("pylog").options(**given, topic=topic)
        .option("checkpointLocation", str(folder.parent / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    kept.put("stream-explain", query._jsq.explainInternal(True))
    kept.put("stream-progress", [query.lastProgress, query.status, query.recentProgress])
    frame.createOrReplaceTempView("logs")
    listed = ", ".join(f"`{name}` '{text}'" for name, text in {**given, "subscribe": topic}.items())
    kept.put("sql-create", spark.sql(f"CREATE TEMPORARY VIEW created USING pylog OPTIONS ({listed})").collect())
    assert spark.table("created").count() > 0
    for name, statement in {
        "sql-explain": "EXPLAIN EXTENDED SELECT value FROM logs",
        "sql-describe": "DESCRIBE EXTENDED logs",
        "sql-explain-created": "EXPLAIN EXTENDED SELECT value FROM created",
        "sql-describe-created": "DESCRIBE EXTENDED created",
        "sql-insert": "EXPLAIN EXTENDED INSERT INTO created SELECT value FROM logs",
    }.items():
        kept.put(name, spark.sql(statement).collect())
    kept.failure("error-load", lambda: read(subscribe=f"{topic}-missing"))
    kept.failure(
        "error-option", lambda: read(**{"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"})
    )
    kept.failure("error-task", lambda: write(frame.selectExpr("raise_error('stop') AS value")))
    log_in(spark, kept, place, folder.parent / "checkpoint-login")
    url = spark.sparkContext.uiWebUrl
    executions = spark._jsparkSession.sharedState().statusStore().executionsCount()
    pages = [*_PAGES, *(f"/SQL/execution/?id={number}" for number in range(executions))]
    for number, page in enumerate(pages):
        with urllib.request.urlopen(url + page.format(app=spark.sparkContext.applicationId)) as answer:
            kept.put(f"page-{number}", answer.read().decode())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Place(**json.loads(sys.argv[4])))
