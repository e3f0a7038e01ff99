"""Python imports this at its start when the folder is on PYTHONPATH: driver and workers of a test then stop at steps of the sink."""

import os

if os.environ.get("PYLOG_STEPS"):
    import sink_steps

    sink_steps.install()
