"""A member of a consumer group as a process of its own: it writes down what it is handed and what it owns.

``python -m tests.cluster.group_member ZOOKEEPER BOOTSTRAP GROUP TOPIC FILE``. Lines of FILE, by ``time.monotonic_ns()``, which all
processes of a machine share: ``record NS PARTITION OFFSET VALUE`` and ``claimed|releasing|lost NS PARTITION...``.
"""

import os
import signal
import sys
import time

from pylog_spark.client.group import ConsumerGroup, Rebalance


def main(zookeeper: str, bootstrap: str, group: str, topic: str, file: str) -> None:
    """Read until SIGTERM."""
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    def rebalanced(event: Rebalance) -> None:
        note(event.what, time.monotonic_ns(), *sorted(partition for _, partition in event.partitions))

    member = ConsumerGroup(
        zookeeper,
        group,
        [topic],
        bootstrap_servers=bootstrap,
        start="earliest",
        auto_commit_interval_ms=200,
        session_timeout_ms=2_000,
        connection_timeout_ms=60_000,
        on_rebalance=rebalanced,
    )
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    with member:
        while not ended:
            for record in member.poll(0.2, max_records=20):
                note("record", time.monotonic_ns(), record.partition, record.offset, (record.value or b"").decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
