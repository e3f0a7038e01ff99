"""What the data source needs in Spark's processes besides reading and writing. Nothing here imports pyspark.

`interpreter` chooses the Python that Spark's workers run, `worker` makes their second task quick, `contact` makes the first
contact with the brokers, `raising` decides how our errors look in Spark's messages, `foreach` has a function for ``foreachBatch``.
"""
