"""What a task gives to Spark: the columns of the schema in its order, and batches of bounded size."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.reading.streams import read
from tests.reading.support import batches, reader
from tests.spark.support import Topic

pytestmark = pytest.mark.cluster

Topics = Callable[..., Topic]


@pytest.mark.parametrize("columns", [("value",), ("offset", "value"), ("timestampType", "partition", "topic", "key")])
def test_a_schema_with_fewer_columns_gives_only_those_in_its_order(
    make_topic: Topics, columns: tuple[str, ...]
) -> None:
    topic = make_topic(partitions=2)
    topic.put(["a", "b"], 0)
    topic.put(["c"], 1)
    found = batches(reader(topic, *columns))
    assert [batch.schema.names for batch in found] == [list(columns)] * 2
    assert sum(batch.num_rows for batch in found) == 3


def test_only_the_columns_asked_for_are_built(make_topic: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    import pylog_spark._native as native

    asked: list[list[str]] = []

    class Spy:
        error = None

        def __init__(self, *given: Any, **_: Any) -> None:
            asked.append(given[5])
            raise native.NativeError("UNREACHABLE", "enough seen;")

    topic = make_topic()
    topic.put(["a"])
    monkeypatch.setattr(native, "RangeReader", Spy)
    with pytest.raises(Exception, match="enough seen"):
        batches(reader(topic, "value", "offset"))
    assert asked == [["value", "offset"]]


def test_a_stream_builds_only_the_columns_of_its_schema(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["a"])
    assert [tuple(row) for row in read(topic, columns="value").batches[0]] == [(b"a",)]


def test_batches_are_cut_by_bytes(make_topic: Topics) -> None:
    topic = make_topic()
    topic.put(["x" * 1_000] * 2_000)
    found = batches(reader(topic, batchBytes=100_000))
    assert sum(batch.num_rows for batch in found) == 2_000
    assert len(found) >= 20
    assert max(batch.nbytes for batch in found) < 150_000
