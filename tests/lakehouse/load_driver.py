"""A load of a topic into a table as a process of its own, which dies at a step: ``python -m tests.lakehouse.load_driver PLAN``.

`PLAN` is JSON: `servers`, `topic`, `table`, and `step`, at which Java and this process are killed (kill -9) when they come there for the
`times`-th time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from pylog_spark import lakehouse
from pylog_spark.lakehouse import commits
from pylog_spark.lakehouse.files import LocalFiles
from tests.spark_home import OUT_OF_THE_WAY

#: A batch's first file is in its place, and the other ones are not.
BETWEEN_FILES = "between-files"
#: All files are in their places, and no commit names them.
BEFORE_COMMIT = "before-commit"
#: The commit is there, and Spark does not know it.
COMMITTED = "committed"
#: The merged file is there, and no commit names it.
BEFORE_MERGE = "before-merge"
#: The commit of a merge is there.
MERGED = "merged"
STEPS = (BETWEEN_FILES, BEFORE_COMMIT, COMMITTED, BEFORE_MERGE, MERGED)
SCHEMA = "id bigint"
#: Rows of a micro-batch, and small files that are merged: few, so that each step is soon reached.
PER_BATCH = 10
MANY = 3


class _Dying(LocalFiles):
    """Files of this machine whose user dies."""

    step = ""
    times = 1
    java = 0
    merges = False

    def move(self, name: str, to: str) -> None:
        super().move(name, to)
        self._at(BETWEEN_FILES)

    def put_if_absent(self, name: str, text: str) -> bool:
        if "/commits/" not in name:
            _Dying.merges = True  # what it removes is written down first
            return super().put_if_absent(name, text)
        merges, _Dying.merges = _Dying.merges, False
        self._at(BEFORE_MERGE if merges else BEFORE_COMMIT)
        done = super().put_if_absent(name, text)
        self._at(MERGED if merges else COMMITTED)
        return done

    @classmethod
    def _at(cls, step: str) -> None:
        if step != cls.step:
            return
        cls.times -= 1
        if cls.times == 0:
            os.kill(cls.java, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


def main(plan: dict[str, Any]) -> None:
    """Load."""
    from pylog_spark.lakehouse import files, loading, parquet
    from pylog_spark.testing import spark_session

    spark = spark_session(config=OUT_OF_THE_WAY)
    spark.sparkContext.setLogLevel("OFF")
    _Dying.step, _Dying.times = plan["step"], plan["times"]
    _Dying.java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    files.LocalFiles = _Dying
    commits.alike_and_many.__defaults__ = (MANY,)
    assert loading.files_of is parquet.files_of is files.files_of
    options = {"kafka.bootstrap.servers": plan["servers"], "subscribe": plan["topic"]}
    lakehouse.load(
        spark,
        plan["table"],
        schema=SCHEMA,
        partition_by=["partition"],
        table_format="delta",
        maxOffsetsPerTrigger=PER_BATCH,
        **options,
    )
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
