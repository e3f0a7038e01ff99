"""What the data source needs of Spark's processes besides reading and writing: nothing here imports pyspark.

`interpreter` chooses the Python that Spark's workers run, `worker` makes their second task quick, `contact` is the first
contact with the brokers, `raising` how our errors look in Spark's messages, `foreach` a function for ``foreachBatch``.
"""
