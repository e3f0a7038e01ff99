"""Brokers for tests, shipped so that users can test against a real one. Nothing here is imported by the rest of pylog.

`LocalCluster` runs several brokers and a ZooKeeper. With pytest the fixtures of `pylog_spark.testing.plugin` are there: ``pylog_broker``,
``pylog_topic``, ``pylog_cluster`` and ``pylog_spark_session``.

Examples
--------
>>> from pylog_spark.testing import LocalBroker
>>> with LocalBroker("/tmp/data", num_partitions=4) as broker:  # doctest: +SKIP
...     print(broker.bootstrap_servers)
"""

from pylog_spark.testing.local_broker import LocalBroker, LocalBrokerError
from pylog_spark.testing.local_cluster import LocalCluster
from pylog_spark.testing.process import ProcessError
from pylog_spark.testing.spark import spark_session, use_this_python
from pylog_spark.testing.zookeeper import ZooKeeper, ZooKeeperError

__all__ = [
    "LocalBroker",
    "LocalBrokerError",
    "LocalCluster",
    "ProcessError",
    "ZooKeeper",
    "ZooKeeperError",
    "spark_session",
    "use_this_python",
]
