"""Brokers for tests, shipped so that users can test against a real one. Nothing here is imported by the rest of pylog.

>>> from pylog_spark.testing import LocalBroker
>>> with LocalBroker("/tmp/data", num_partitions=4) as broker:  # doctest: +SKIP
...     print(broker.bootstrap_servers)

With pytest, ``pytest_plugins = ["pylog_spark.testing.fixtures"]`` in a conftest gives the fixture ``pylog_broker``.
"""

from pylog_spark.testing.local_broker import LocalBroker, LocalBrokerError
from pylog_spark.testing.spark import spark_session, use_this_python

__all__ = ["LocalBroker", "LocalBrokerError", "spark_session", "use_this_python"]
