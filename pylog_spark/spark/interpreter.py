"""Which Python runs Spark's workers, when a program of a virtual environment that is not activated imports this package.

Spark starts ``$PYSPARK_PYTHON``, else ``python3`` of the PATH, also for the process that looks for data sources. In such a program
that is another Python, without pylog: ``format("pylog")`` is not found, and Spark says only DATA_SOURCE_NOT_FOUND. Spark's Java
half reads the variable from its environment when it starts, so it is set as early as possible: at the import.
"""

from __future__ import annotations

import logging
import os
import sys

_log = logging.getLogger("pylog_spark")

VARIABLE = "PYSPARK_PYTHON"
#: Set by spark-submit and pyspark, whose Java half runs already.
_GATEWAY = "PYSPARK_GATEWAY_PORT"


def choose_python() -> None:
    """Set ``PYSPARK_PYTHON`` to this Python when it is not set and Spark would not start this virtual environment's Python.

    A value that is set already is kept, and so is ``python3`` of the PATH for a program that runs in no virtual environment. After the
    first session of the process it is too late; then a warning is logged instead.
    """
    if os.environ.get(VARIABLE) or os.environ.get(_GATEWAY) or not _is_hidden():
        return
    if _java_runs():
        _log.warning(
            "Spark was started before pylog_spark was imported, and its workers run %s, not this virtual environment's %s: "
            'format("pylog") may not be found; import pylog_spark before the session is made, or set %s',
            _of_path(),
            sys.executable,
            VARIABLE,
        )
        return
    os.environ[VARIABLE] = sys.executable


def _is_hidden() -> bool:
    """Whether this is the Python of a virtual environment, and python3 of the PATH is not."""
    if sys.prefix == sys.base_prefix:
        return False
    found = _of_path()
    # Compare the directories: the files are links to the same Python.
    return found is None or os.path.realpath(os.path.dirname(found)) != os.path.realpath(
        os.path.dirname(sys.executable)
    )


def _of_path() -> str | None:
    """``python3`` of the PATH. The standard library's `shutil` finds it too, and brings three libraries for compression into the memory of
    each worker and broker."""
    places = (os.path.join(folder, "python3") for folder in os.get_exec_path())
    return next((each for each in places if os.path.isfile(each) and os.access(each, os.X_OK)), None)


def _java_runs() -> bool:
    context = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    return getattr(getattr(context, "SparkContext", None), "_gateway", None) is not None
