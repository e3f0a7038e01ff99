"""What tests of every folder share, and nothing that only one of them needs.

| file | what it has |
|---|---|
| `waiting` | `until`: the one way to wait |
| `kafka` | Apache Kafka, started once for each process |
| `zookeeper` | one ZooKeeper for each process, and places in it for clusters |
| `runs` | how many rounds a run has, and from which seed |
| `brokers` | one broker or a cluster of three, harmed as one |
| `bench` | a cluster that may be harmed in parts: through `proxy` (its network), `machine` (power, clocks); `watch` sees its documents, `disks` its logs |
| `load` | clients that send and read meanwhile, and `history`, what happened to them |
| `order` | which file runs when and in which process; the recorded seconds of every test |
"""
