"""Writing a frame into a log, exactly once (or, when asked, at least once). Never imports `source`, `cluster` or `broker`.

Every task writes in a transaction of its own and prepares it; the driver's commit stores ONE decision and then ends them all.

| file | what is there |
|---|---|
| `identity` | pure: which write this is, and the names of its transactions |
| `decision` | the stored decision, and the topic that keeps it |
| `protocol` | pure: what to do next, given the decision, the tasks' messages and the version |
| `ledger` | reading decisions and storing one, with the brokers |
| `commit` | the driver: fence, read, decide, end, clean up |
| `attempt` | one task's transaction: open, flush, prepare, look again |
| `audit` | how many rows a task has written, said in the audit topic |
| `overview` | the writes that the brokers know of, and ending one with a command |
| `abandoned` | ending the writes of drivers that died |
| `holding` | which open transactions hold readers back |
| `task` | one Spark partition: rows in, a commit message out |
| `batch`, `stream` | the writer classes that Spark calls |
"""
