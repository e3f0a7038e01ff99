"""A query that moves from format("kafka") to format("pylog") on the same topic, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.parity.compare import Ways
from tests.parity.differences import DIFFERENCES
from tests.parity.ways import Query, Way, outcome, stream

pytestmark = pytest.mark.canary  # both formats read one topic of Apache Kafka
EARLIEST = {"startingOffsets": "earliest"}


def moved(ways: Ways) -> tuple[Way, Way]:
    """The connector and pylog on the same topics of Apache Kafka, with the same checkpoints."""
    connector, pylog = ways.connector, ways.pylog_on_kafka
    return connector, replace(pylog, prefix=connector.prefix, folder=connector.folder)


def filled(way: Way) -> None:
    """Two partitions of five records."""
    way.topic("t", 2)
    for partition in range(2):
        way.put("t", [f"{partition}-{n}" for n in range(5)], partition)


def values(batches: list[Any]) -> list[bytes]:
    """All values."""
    return [row[-1] for batch in batches for row in batch.rows]


def test_a_checkpoint_of_the_connector_is_gone_on_with(ways: Ways) -> None:
    connector, pylog = moved(ways)
    filled(connector)
    first = stream(connector, maxOffsetsPerTrigger=4, **EARLIEST)
    assert len(values(first)) == 10
    connector.put("t", ["new"], 1)
    assert values(stream(pylog)) == [b"new"]
    connector.put("t", ["newer"], 0)
    assert values(stream(pylog)) == [b"newer"]


def test_a_batch_that_the_connector_planned_is_read_by_pylog_as_planned(ways: Ways) -> None:
    connector, pylog = moved(ways)
    filled(connector)
    query = Query(connector, connector.folder / "checkpoint")
    first = query.run(connector.stream_reader(maxOffsetsPerTrigger=4, **EARLIEST).load())
    last = max(batch.number for batch in first)
    for name in (f"{last}", f".{last}.crc"):
        (query.checkpoint / "commits" / name).unlink()
    connector.put("t", ["new"], 1)
    again = Query(pylog, query.checkpoint)
    rest = again.run(pylog.stream_reader().load())
    assert sorted(row[-1] for row in again._rows[last]) == sorted(values(first[-1:]))
    assert values(rest) == [b"new"]


@pytest.mark.long  # a checkpoint that is gone on with: above
def test_offsets_of_either_checkpoint_can_be_given_as_a_start_to_the_other(ways: Ways) -> None:
    connector, pylog = moved(ways)
    filled(connector)
    for here, there in ((connector, pylog), (pylog, connector)):
        query = Query(here, here.folder / f"from-{here.format}")
        query.run(here.stream_reader(**EARLIEST).load())
        end = {topic: offsets for topic, offsets in query.ends()[-1].items() if topic != "@pylog"}
        connector.put("t", [f"to {there.format}"], 0)
        assert values(stream(there, f"to-{there.format}", startingOffsets=json.dumps(end))) == [
            f"to {there.format}".encode()
        ]


@pytest.mark.long  # the connector's own doing
def test_the_connector_does_not_take_a_checkpoint_of_pylog(ways: Ways) -> None:
    connector, pylog = moved(ways)
    filled(connector)
    stream(pylog, **EARLIEST)
    connector.put("t", ["new"], 1)
    assert "offsets in the checkpoint" in DIFFERENCES
    assert outcome(lambda: values(stream(connector)), "@pylog|Expected") == "refused"
