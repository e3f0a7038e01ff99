"""Records that are gone although a query needed them, as Spark's users meet it. The cases: ``tests/reading/test_losses.py``."""

from collections.abc import Callable

import pytest

from tests.spark.support import Collector, Topic, sentence_in

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.mark.long  # tests/reading/test_losses.py
def test_a_topic_that_was_recreated_while_a_query_was_stopped_is_one_named_error_or_read_anew_when_loss_is_allowed(
    make_topic: Topics, checkpoint: str
) -> None:
    topic = make_topic()
    topic.put(["a", "b", "c"])
    Collector(checkpoint).run(topic.read_stream())
    topic.recreate()
    topic.put(["x", "y", "z", "later"])
    with pytest.raises(Exception, match="PYLOG_") as caught:
        Collector(checkpoint).run(topic.read_stream())
    condition, sentence = sentence_in(str(caught.value))
    assert condition == "PYLOG_TOPIC_RECREATED"
    assert f"The topic '{topic.name}' was deleted and created again" in sentence
    run = Collector(checkpoint)
    run.run(topic.read_stream(failOnDataLoss=False))
    assert run.values == ["later", "x", "y", "z"]


def test_a_topic_deleted_while_a_query_runs_is_named(make_topic: Topics, checkpoint: str) -> None:
    topic, other = make_topic(), make_topic()
    topic.put(["a"])
    other.put(["b"])
    both = f"{topic.name},{other.name}"
    query = Collector(checkpoint).start(topic.read_stream(subscribe=both, **{"fetchOffset.retryIntervalMs": 10}))
    query.processAllAvailable()
    topic.client.delete_topics([topic.name])
    with pytest.raises(Exception, match="PYLOG_") as caught:
        query.awaitTermination(60)
    condition, sentence = sentence_in(str(caught.value))
    assert condition == "PYLOG_TOPIC_DELETED"
    assert f"The topic '{topic.name}' was deleted" in sentence
