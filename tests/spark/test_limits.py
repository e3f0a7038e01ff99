"""Limits of a micro-batch as Spark's engine asks for them. What they count, and on which logs:
``tests/reading/test_limits_of_batches.py``."""

from collections.abc import Callable

import pytest

from tests.spark.support import Collector, Topic, transactions

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_every_batch_has_exactly_as_many_rows_as_allowed_while_there_are_enough(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic(partitions=2)
    transactions(topic, (10, True), (7, False), (15, True))
    topic.put([f"plain-{number}" for number in range(10)], 1)
    run = Collector(checkpoint)
    run.run(topic.read_stream(maxRecordsPerTrigger=13, **{"kafka.isolation.level": "read_committed"}))
    assert run.sizes == [13, 13, 9]
    assert len(set(run.values)) == 35


@pytest.mark.long  # tests/unit/spark
def test_trigger_once_takes_everything_whatever_the_limits(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic()
    topic.put(["a"] * 10)
    run = Collector(checkpoint)
    query = run.start(topic.read_stream(maxRecordsPerTrigger=3, maxBytesPerTrigger=1), once=True)
    assert query.awaitTermination(60)
    assert run.sizes == [10]
