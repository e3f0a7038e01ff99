"""``python -m pylog_spark`` is the command ``pylog``."""

from pylog_spark.cli.main import main

main()
