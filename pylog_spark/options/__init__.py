"""Every option of ``format("pylog")``, once: name, type, default, in which reads and writes it may be used, and what it means.

The names and meanings are those of Spark's Kafka connector where it has them. Spark hands option names over in lower case;
error messages use the spelling of the table. `read_options` and `write_options` return frozen values, or raise a `PylogError`
that says what to do. pyspark is not imported here.

| file | what is there |
|---|---|
| `table` | the options |
| `names` | which names are known, refused, ignored; the options' values; settings of the native client |
| `allowed` | what the options of a query may make Spark run and open |
| `secrets` | which settings are secret, and never shown |
| `java` | settings of the Java clients that are ignored or refused |
| `read`, `write` | the options of a query as one value |
| `page` | the documentation, made from the table |
"""

from pylog_spark.offsets.texts import AT_LEAST_ONCE, EXACTLY_ONCE
from pylog_spark.options.allowed import check_allowed
from pylog_spark.options.names import check_names
from pylog_spark.options.page import options_table, page
from pylog_spark.options.read import ReadOptions, Subscription, read_options
from pylog_spark.options.table import ALL, BATCH, OPTIONS, READ, STREAM, WRITE, Option
from pylog_spark.options.write import WriteOptions, write_options

__all__ = [
    "ALL",
    "AT_LEAST_ONCE",
    "BATCH",
    "EXACTLY_ONCE",
    "OPTIONS",
    "READ",
    "STREAM",
    "WRITE",
    "Option",
    "ReadOptions",
    "Subscription",
    "WriteOptions",
    "check_allowed",
    "check_names",
    "options_table",
    "page",
    "read_options",
    "write_options",
]
