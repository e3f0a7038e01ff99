"""A Spark session whose workers run this Python: the one place that knows how.

Spark starts ``$PYSPARK_PYTHON``, else ``python3`` of the PATH, for its workers and for the processes that look for Python
data sources. If a virtual environment is not activated, that is another Python without pylog, and
``format("pylog")`` is not found. Spark's Java process starts the look-up with its own environment, so
``spark.pyspark.python`` does not help, neither in a session nor for ``spark-submit`` (measured with Spark 4.3).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings for a small machine; none of them changes results.
_QUIET_AND_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
#: The class's package in each version of Spark. A wrong name would fail every query, so other versions get no setting.
_FILE_MANAGER_PACKAGES = {
    "4.0": "streaming",
    "4.1": "streaming.checkpointing",
    "4.2": "streaming.checkpointing",
    "4.3": "streaming.checkpointing",
}


def checkpoint_settings(spark_version: str) -> dict[str, str]:
    """Give the settings with which Spark starts fewer processes for the files of a checkpoint in a local folder.

    By default it starts 20 processes for each micro-batch of a query without state (16 times ``readlink``, 4 times ``chmod``, because
    pip's pyspark lacks the native Hadoop library), and more for state; with these settings it starts 4. They are for checkpoints in
    local folders with one driver at a time. On other file systems Spark's default starts no process, and it is safer
    when two drivers write to one checkpoint by mistake.

    Parameters
    ----------
    spark_version : str
        The version, such as ``pyspark.__version__``. For unknown versions there are no settings.
    """
    package = _FILE_MANAGER_PACKAGES.get(".".join(spark_version.split(".")[:2]))
    if package is None:
        return {}
    return {_FILE_MANAGER: f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"}


def use_this_python() -> None:
    """Let Spark's workers run this Python. Call it before the first session; a user's own choice is kept."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def spark_session(
    master: str = "local[2]", config: Mapping[str, str] | None = None, app_name: str = "pylog"
) -> SparkSession:
    """Give a session (the running one, if there is one) in which ``format("pylog")`` works.

    It is meant for one machine: few partitions, no UI, and in local mode `checkpoint_settings`.

    Parameters
    ----------
    master : str
        Spark's master.
    config : mapping, optional
        More settings; they win over the ones made here.
    app_name : str
        Name of the application.
    """
    use_this_python()
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app_name)
    files = checkpoint_settings(pyspark.__version__) if master.partition("[")[0] == "local" else {}
    for name, text in {**_QUIET_AND_SMALL, **files, **(config or {})}.items():
        builder = builder.config(name, text)
    return builder.getOrCreate()
