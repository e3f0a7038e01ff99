"""spark.readStream.format("pylog"): what Spark's engine makes of it. The source without the engine: ``tests/reading``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.support import Collector, Topic, committed

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_a_query_begins_at_its_start_and_restarted_goes_on_exactly_where_it_stopped(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", "b"], 0)
    topic.put(["c"], 1)
    run = Collector(checkpoint)
    run.run(topic.read_stream(startingOffsets="-1 offset"))
    assert run.values == ["b", "c"]
    topic.put(["d"], 1)
    again = Collector(checkpoint)
    again.run(topic.read_stream(startingOffsets="-1000 offsets"))
    assert again.values == ["d"]
    assert committed(checkpoint) == [0, 1]


def test_a_batch_that_was_planned_but_not_committed_is_run_again_the_same(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", "b"], 0)
    topic.put(["c"], 1)
    Collector(checkpoint).run(topic.read_stream())
    topic.put(["later"], 0)
    # As if the driver had died after the batch and before its commit was noted.
    for name in ("0", ".0.crc"):
        (Path(checkpoint) / "commits" / name).unlink()
    again = Collector(checkpoint)
    again.run(topic.read_stream())
    assert sorted(row.value for row in again.batches[0]) == [b"a", b"b", b"c"]
    assert [row.value for row in again.batches[1]] == [b"later"]


def test_a_running_query_sees_new_records_and_new_partitions_from_their_beginning(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic()
    topic.put(["a"])
    run = Collector(checkpoint)
    query = run.start(topic.read_stream())
    query.processAllAvailable()
    assert run.values == ["a"]
    topic.grow(2)
    topic.put(["b"], 1)
    query.processAllAvailable()
    query.stop()
    assert run.values == ["a", "b"]


def test_the_checkpoint_holds_offsets_as_documented_and_progress_the_lag(make_topic: Topics, checkpoint: str) -> None:
    topic = make_topic()
    topic.put(["a", "b", "c"])
    query = Collector(checkpoint).run(topic.read_stream(maxOffsetsPerTrigger=2))
    text = (Path(checkpoint) / "offsets" / "0").read_text().splitlines()[-1]
    topic_id = topic.client.describe_topics([topic.name])[0]["topic_id"]
    assert json.loads(text) == {"@pylog": {"topic_ids": {topic.name: topic_id}, "version": 1}, topic.name: {"0": 2}}
    first = next(progress for progress in query.recentProgress if progress.batchId == 0)
    assert json.loads(first.sources[0].endOffset)[topic.name] == {"0": 2}
    assert json.loads(first.sources[0].latestOffset)[topic.name] == {"0": 3}
