"""A member of a consumer group as a process of its own: it writes down what it is handed and what it owns.

``python -m tests.cluster.group_member ZOOKEEPER BOOTSTRAP GROUP TOPIC FILE``. Lines of FILE, by ``time.monotonic_ns()``, which all
processes of a machine share: ``record NS PARTITION OFFSET VALUE`` and ``claimed|releasing|lost NS PARTITION...``. The time of a
record is the latest moment that is known to be before it was delivered: when `poll` was called, or when it reported a claim. A process
that is stopped in between hands out nothing later than that.
"""

import os
import signal
import sys
import time

from pylog_spark.consumer_group import ConsumerGroup, Rebalance


def main(zookeeper: str, bootstrap: str, group: str, topic: str, file: str) -> None:
    """Read until SIGTERM."""
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*words: object) -> None:
        os.write(out, (" ".join(map(str, words)) + "\n").encode())

    before = 0

    def rebalanced(event: Rebalance) -> None:
        nonlocal before
        before = time.monotonic_ns()
        note(event.what, before, *sorted(partition for _, partition in event.partitions))

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
            before = time.monotonic_ns()
            for record in member.poll(0.2, max_records=20):
                note("record", before, record.partition, record.offset, (record.value or b"").decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
