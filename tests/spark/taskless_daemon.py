"""Stands in for Spark's daemon of Python workers (``spark.python.daemon.module``): there are none for tasks, all others are as ever."""

import runpy
import sys

if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        sys.exit("no worker for tasks")
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
