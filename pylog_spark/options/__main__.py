"""``python -m pylog_spark.options``: the page ``docs/options.md``."""

from pylog_spark.options.page import page

print(page(), end="")
