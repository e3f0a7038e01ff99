"""Records that are gone although a query needed them, as Spark's users meet it. The cases: ``tests/reading/test_losses.py``."""

from collections.abc import Callable

import pytest

from tests.spark.support import Collector, Topic, sentence_in

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


def test_a_topic_that_was_recreated_while_a_query_was_stopped_is_one_named_error_or_read_anew_when_loss_is_allowed(
    topic: Topics, checkpoint: str
) -> None:
    one = topic()
    one.put(["a", "b", "c"])
    Collector(checkpoint).run(one.read_stream())
    one.recreate()
    one.put(["x", "y", "z", "later"])
    with pytest.raises(Exception, match="PYLOG_") as caught:
        Collector(checkpoint).run(one.read_stream())
    condition, sentence = sentence_in(str(caught.value))
    assert condition == "PYLOG_TOPIC_RECREATED"
    assert f"The topic '{one.name}' was deleted and created again" in sentence
    run = Collector(checkpoint)
    run.run(one.read_stream(failOnDataLoss=False))
    assert run.values == ["later", "x", "y", "z"]


def test_a_topic_deleted_while_a_query_runs_is_named(topic: Topics, checkpoint: str) -> None:
    one, other = topic(), topic()
    one.put(["a"])
    other.put(["b"])
    both = f"{one.name},{other.name}"
    query = Collector(checkpoint).start(one.read_stream(subscribe=both, **{"fetchOffset.retryIntervalMs": 10}))
    query.processAllAvailable()
    one.client.delete_topics([one.name])
    with pytest.raises(Exception, match="PYLOG_") as caught:
        query.awaitTermination(60)
    condition, sentence = sentence_in(str(caught.value))
    assert condition == "PYLOG_TOPIC_DELETED"
    assert f"The topic '{one.name}' was deleted" in sentence
