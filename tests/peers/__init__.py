"""Other people's software that pylog is tested and measured against: Apache Kafka, its tools, Spark's Kafka connector.

Nothing here imports pylog. The jars come from Maven Central once, into `.cache/peers` (or `PYLOG_PEERS`).
"""
