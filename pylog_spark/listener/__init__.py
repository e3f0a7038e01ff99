"""Listeners for ``spark.streams.addListener``: a query's numbers for Prometheus and OpenTelemetry, and its offsets in a consumer group.

Spark tells a listener the name of a query and its offsets when a batch is finished, neither of which a source learns. Both listeners understand
the offsets of pylog's sources and of those of Spark's Kafka connector; other sources are left out. They work in Spark classic and over
Spark Connect, where they run in the client. They do not slow a query: Spark calls listeners beside it.
"""

from pylog_spark.listener.group import GroupMirror
from pylog_spark.listener.metrics import QueryMetrics

__all__ = ["GroupMirror", "QueryMetrics"]
