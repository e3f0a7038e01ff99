"""A stream's progress shown in a consumer group, through Spark. Kafka's tools, and groups that refuse:
``tests/reading/test_progress_in_a_group.py``."""

from collections.abc import Callable

import pytest

from pylog_spark.client import Admin
from tests.harness.waiting import until
from tests.spark.support import Collector, Topic, committed

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_a_group_shows_what_a_stream_has_finished(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic(partitions=2)
    topic.put(["v"] * 6, 0)
    topic.put(["v"] * 3, 1)
    group = f"{topic.name}-progress"
    run = Collector(checkpoint)
    with Admin(topic.servers) as admin:
        # The first group of a new cluster may have to wait for its coordinator, for which a query would not wait.
        admin.alter_group_offsets(group, {(topic.name, 0): 0})
        run.run(topic.read_stream(maxOffsetsPerTrigger=3, **{"kafka.group.id": group}))
        assert run.sizes == [3, 3, 3]
        assert admin.group_offsets(group) == {(topic.name, 0): 6, (topic.name, 1): 3}


@pytest.mark.long  # tests/reading/test_progress_in_a_group.py
def test_a_query_that_is_stopped_between_triggers_leaves_its_last_batch_out_until_it_starts_again(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic()
    topic.put(["v"] * 3)
    group = f"{topic.name}-stopped"
    run = Collector(checkpoint)
    with Admin(topic.servers) as admin:
        admin.alter_group_offsets(group, {(topic.name, 0): 0})
        frame = topic.read_stream(**{"kafka.group.id": group})
        query = run.start(frame, processingTime="1 hour")
        until(lambda: committed(checkpoint) == [0], "the first batch is finished", 120)
        query.stop()
        assert run.sizes == [3]
        assert admin.group_offsets(group) == {(topic.name, 0): 0}
        run.run(frame)
        assert run.sizes == [3]
        assert admin.group_offsets(group) == {(topic.name, 0): 3}
