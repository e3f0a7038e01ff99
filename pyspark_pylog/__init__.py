from pylog_spark.datasource import PylogDataSource as DefaultSource  # noqa: F401
