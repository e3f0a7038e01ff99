"""pylog: a durable, replayable log for PySpark. Importing this package starts and imports nothing heavy.

It sets PYSPARK_PYTHON where Spark's workers would otherwise run a Python without pylog, see `pylog_spark.spark.interpreter`.
"""

from typing import TYPE_CHECKING

from pylog_spark.spark.interpreter import choose_python

if TYPE_CHECKING:
    from pylog_spark.broker.process import Broker, start_broker
    from pylog_spark.spark.foreach import foreach_batch
    from pylog_spark.spark.watch import watch

__version__ = "0.1.0"

__all__ = ["Broker", "__version__", "foreach_batch", "start_broker", "watch"]

choose_python()


def __getattr__(name: str) -> object:
    # Spark's workers import this package in every process: its parts are imported only when they are asked for.
    if name in ("Broker", "start_broker"):
        from pylog_spark.broker import process

        return getattr(process, name)
    if name == "foreach_batch":
        from pylog_spark.spark import foreach

        return foreach.foreach_batch
    if name == "watch":
        from pylog_spark.spark import watch

        return watch.watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
