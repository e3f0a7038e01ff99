"""The checkpoint of a streaming query, read and changed without Spark: where its sources are, and where they go on.

Spark has no interface for this; what its files look like is in `offset_log` and `query`. Nothing here imports pyspark.
"""
