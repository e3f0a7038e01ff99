"""Consumers that divide a topic's partitions among themselves through ZooKeeper, as in the Kafka paper: see `ConsumerGroup`.

`assignment` decides which member owns which partition (pure), `documents` describes what is stored in ZooKeeper, `membership`
registers, claims, commits and releases, `readers` reads; `member` puts them together.
"""

from pylog_spark.consumer_group.member import ConsumerGroup, Rebalance

__all__ = ["ConsumerGroup", "Rebalance"]
