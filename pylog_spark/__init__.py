"""pylog: a durable, replayable log for PySpark. Importing this package starts and imports nothing heavy."""

__version__ = "0.1.0"
