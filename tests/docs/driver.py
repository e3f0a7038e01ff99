"""Runs the Python of pages in one process, so in one Java process of Spark's: ``python -m tests.docs.driver PAGES OUTCOMES``.

PAGES is a file of JSON: a list of [page, program, folder]. Each program has a namespace and a working directory of its own and finds
no session of Spark's, only the context of the first that made one. A line of JSON, [page, what it printed, traceback or null], is added
to OUTCOMES after each. Where a folder comes again, the brokers that its first program has left are stopped first, as they would be by
the end of its process.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from pylog_spark.broker.process import Broker


def run(page: str, program: str, names: dict[str, Any]) -> tuple[str, str | None]:
    """What a program printed, and the traceback of what it raised. Line numbers are the page's; `names` is its namespace."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(program, page, "exec"), names)
    except Exception:  # noqa: BLE001  # it is reported, and the next page runs
        return printed.getvalue(), traceback.format_exc()
    return printed.getvalue(), None


def work_in(folder: str) -> None:
    """Relative paths lead into `folder` from now on, also those that Spark's Java is given."""
    os.chdir(folder)
    pyspark = sys.modules.get("pyspark")
    jvm = pyspark and pyspark.SparkContext._jvm
    if jvm:
        # The one for Hadoop's FileContext, the other for its FileSystem.
        jvm.java.lang.System.setProperty("user.dir", folder)
        hadoop = jvm.org.apache.hadoop
        hadoop.fs.FileSystem.getLocal(hadoop.conf.Configuration()).setWorkingDirectory(hadoop.fs.Path(folder))


def end_session() -> None:
    """Stop the queries of the session that a page left, and forget it: the next page makes one of its own. Its context stays, with Java
    and the Python workers: starting those anew took three tenths of what all pages cost."""
    sql = sys.modules.get("pyspark.sql")
    session = sql and sql.SparkSession.getActiveSession()
    if session:
        for query in session.streams.active:
            query.stop()
        java_sessions = sql.SparkSession._get_j_spark_session_class(session._jvm)
        java_sessions.clearDefaultSession()
        java_sessions.clearActiveSession()
        sql.SparkSession._instantiatedSession = None


if __name__ == "__main__":
    work = json.loads(Path(sys.argv[1]).read_text())
    first: dict[str, dict[str, Any]] = {}
    for number, (name, text, place) in enumerate(work):
        work_in(place)
        for left in first.pop(place, {}).values():
            if isinstance(left, Broker):
                left.close()
        namespace: dict[str, Any] = {"__name__": "__main__"}
        if any(later == place for _, _, later in work[number + 1 :]):
            first[place] = namespace
        outcome = run(name, text, namespace)
        # Its clients end with its names.
        del namespace
        end_session()
        with open(sys.argv[2], "a") as outcomes:
            outcomes.write(json.dumps([name, *outcome]) + "\n")
