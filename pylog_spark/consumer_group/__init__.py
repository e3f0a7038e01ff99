"""Consumers that divide a topic's partitions among themselves through ZooKeeper, as in the Kafka paper: see `ConsumerGroup`.

`assignment` decides who has what (pure), `documents` is what stands in ZooKeeper, `membership` registers, claims, commits and
releases, `readers` reads; `member` puts them together.
"""

from pylog_spark.consumer_group.member import ConsumerGroup, Rebalance

__all__ = ["ConsumerGroup", "Rebalance"]
