"""What it costs to count for an audit: the same write with and without, in turns, both by pylog.

A rate tells differences of some hundredths on a quiet machine only; the CPU seconds of the same writes tell them on a busy one, too.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import cpu_of_rows
from benchmarks.bench import Bench, Runs
from benchmarks.load import delete_topic

_MILLION = 1_000_000
#: The side that does not count.
UNCOUNTED = "uncounted"


def spark_write(bench: Bench, records: int, value_bytes: int) -> Runs:
    """Million rows a second that the sink writes."""
    records = bench.records(records)
    return _writes(bench, records, value_bytes, lambda job: records / _MILLION / bench.spark("pylog").run(**job))


def spark_write_cpu(bench: Bench, records: int, value_bytes: int) -> Runs:
    """CPU seconds of Spark and the broker for a million rows that the sink writes."""
    records = bench.records(records)
    return _writes(
        bench, records, value_bytes, lambda job: sum(cpu_of_rows.cost(bench, "pylog", job, records).values())
    )


def _writes(bench: Bench, records: int, value_bytes: int, measure: Callable[[dict[str, object]], float]) -> Runs:
    """What `measure` finds of a job that writes rows into a topic of its own, with and without an audit topic."""
    servers, audit = bench.broker("pylog").bootstrap_servers, bench.new_topic("pylog", 1)

    def once(options: dict[str, str]) -> float:
        topic = bench.new_topic("pylog")
        job: dict[str, object] = {"do": "write", "rows": records, "bytes": value_bytes, "options": options}
        try:
            return measure({**job, "bootstrap": servers, "topic": topic})
        finally:
            delete_topic(servers, topic)

    measures = {UNCOUNTED: partial(once, {}), "pylog": partial(once, {"auditTopic": audit})}
    return bench.take_turns(measures, warm_up=2, fills_memory=True, turns_around=True)


def command_line(bench: Bench, records: int, value_bytes: int) -> Runs:
    """Million lines a second of ``pylog produce``, its start included."""
    records, servers = bench.records(records), bench.broker("pylog").bootstrap_servers
    audit = bench.new_topic("pylog", 1)
    folder = bench.fresh_folder("lines")
    folder.mkdir()
    lines = Path(folder, "lines")
    lines.write_text(f"{'x' * value_bytes}\n" * records)

    def once(*words: str) -> float:
        topic = bench.new_topic("pylog")
        command = [sys.executable, "-m", "pylog_spark", "produce", topic, str(lines), "-b", servers, *words]
        try:
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return records / _MILLION / (time.perf_counter() - started)
        finally:
            delete_topic(servers, topic)

    measures = {UNCOUNTED: once, "pylog": partial(once, "--audit-topic", audit)}
    return bench.take_turns(measures, fills_memory=True, turns_around=True)
