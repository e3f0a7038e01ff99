"""Writing a frame into a log, at least once. `task` writes one Spark partition; `batch` and `stream` are Spark's faces.
Never imports `source`, `cluster` or `broker`."""
