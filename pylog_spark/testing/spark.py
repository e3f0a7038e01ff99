"""A Spark session whose Python workers are this very Python: the one place that knows how.

Spark starts ``$PYSPARK_PYTHON``, else ``python3`` of the PATH, for its workers and for the processes that look for Python
data sources. In a virtual environment that is not activated, that is another Python without pylog, and
``format("pylog")`` is not found. The look-up is started by Spark's Java process from its own environment, so
``spark.pyspark.python`` does not help, neither in a session nor for ``spark-submit`` (measured with Spark 4.3).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: For a small machine: nothing here changes results.
_QUIET_AND_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def use_this_python() -> None:
    """Let Spark's workers run this Python. Call it before the first session; a user's own choice is kept."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def spark_session(
    master: str = "local[2]", config: Mapping[str, str] | None = None, app_name: str = "pylog"
) -> SparkSession:
    """Give a session (the running one, if there is one) in which ``format("pylog")`` works.

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
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(app_name)
    for name, text in {**_QUIET_AND_SMALL, **(config or {})}.items():
        builder = builder.config(name, text)
    return builder.getOrCreate()
