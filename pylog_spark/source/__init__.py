"""Reading a log from Spark. `log` asks the brokers, `planner` decides what a micro-batch reads, `tasks` which Spark
tasks read it, `partition` reads in a task, `pushdown` takes over conditions of a query, `held_back` finds transactions
behind which nothing can be read; `batch` and `stream` are the reader classes that Spark calls. Never imports `sink`, `cluster` or
`broker`."""
