"""What tests of every folder share, and nothing that only one of them needs.

| file | what it has |
|---|---|
| `waiting` | `until`: the one way to wait |
| `kafka` | Apache Kafka, started once for each process |
| `zookeeper` | one ZooKeeper for each process, and places in it for clusters |
| `runs` | how many rounds a run has, and from which seed |
| `order` | which file runs when and in which process; the recorded seconds of every test |
"""
