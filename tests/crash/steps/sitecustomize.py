"""Python imports this at its start when the folder is on PYTHONPATH: driver and workers of a test then stop at steps of the sink, and
append to a file what pylog logs."""

import os

if os.environ.get("PYLOG_STEPS"):
    import sink_steps

    sink_steps.install()

if os.environ.get("PYLOG_INFO_LOG"):
    import logging

    _logger = logging.getLogger("pylog_spark")
    _logger.setLevel(logging.INFO)
    _logger.addHandler(logging.FileHandler(os.environ["PYLOG_INFO_LOG"], delay=True))
