"""Groups of consumers that divide a topic's partitions among themselves through ZooKeeper: see `ConsumerGroup`."""

from pylog_spark.client.group.consumer_group import ConsumerGroup, Rebalance

__all__ = ["ConsumerGroup", "Rebalance"]
