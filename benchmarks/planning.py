"""What the driver's planning of a micro-batch takes with very many partitions: asking the broker and deciding, without Spark."""

import time
from collections.abc import Callable
from functools import cache

from confluent_kafka import Producer

from benchmarks.bench import Bench, Runs
from benchmarks.load import create_topic

_TOPICS = 10
# Records of a micro-batch, each in a partition of its own.
_WRITTEN = 100


def planned(bench: Bench, partitions: int) -> Runs:
    """Milliseconds from Spark's question for new offsets to the ranges of a micro-batch, of which a hundred partitions have a record."""
    if "pylog" not in bench.sides:
        return {}
    return bench.take_turns({"pylog": _planner(bench, partitions)})


@cache
def _planner(bench: Bench, partitions: int) -> Callable[[], float]:
    from pylog_spark.datasource import STREAM
    from pylog_spark.options.read import read_options
    from pylog_spark.source.log import Log
    from pylog_spark.source.planner import StreamPlanner

    servers, name = bench.broker("pylog").bootstrap_servers, bench.new_name()
    for number in range(_TOPICS):
        create_topic(servers, f"{name}-{number}", partitions // _TOPICS)
    given = {"subscribepattern": f"{name}-.*", "startingoffsets": "latest", "kafka.bootstrap.servers": servers}
    options = read_options(given, STREAM)
    log = Log(options)
    bench.when_closed(log.close)
    planner = StreamPlanner(options, log)
    reached = planner.initial()

    def once() -> float:
        nonlocal reached
        producer = Producer({"bootstrap.servers": servers})
        for number in range(_WRITTEN):
            producer.produce(f"{name}-{number % _TOPICS}", b"x", partition=number // _TOPICS)
        assert producer.flush(60) == 0
        begun = time.perf_counter()
        end = planner.latest(reached, None, may_wait=True)
        ranges = planner.ranges(reached, end)
        took = time.perf_counter() - begun
        assert len(ranges) == _WRITTEN
        reached = end
        return took * 1_000

    return once
