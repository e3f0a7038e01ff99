"""Reading a log from Spark. `log` asks the brokers, `planner` decides what a micro-batch reads, `partition` reads one
range in a task; `batch` and `stream` are Spark's faces of these. Never imports `sink`, `cluster` or `broker`."""
