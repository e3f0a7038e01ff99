"""What the exactly-once sink leaves in the brokers does not grow with the number of batches."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from pylog_spark._native import Client
from pylog_spark.sink.decision import TOPIC, TOPIC_CONFIGS
from pylog_spark.sink.identity import STREAM, Write, batch_write
from pylog_spark.sink.ledger import Ledger
from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.spark.once import Job, read_committed, stored_keys

# compaction of such topics: tests/broker/test_compaction.py
pytestmark = [pytest.mark.long, pytest.mark.cluster]

BATCHES = 120


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    """A broker that compacts all the time, and closes segments by their age as often: a partition to which nothing more is written,
    as those of batches without a name, would else keep its last segment until the broker looks again after a minute."""
    with Brokers(tmp_path / "data", log_cleaner_backoff_ms=50, log_retention_check_interval_ms=50) as brokers:
        yield brokers


def run(servers: str, write: Write) -> None:
    job = Job(servers, "t", write)
    job.task(0, f"{write.key} {write.version}")
    job.commit()


def test_decisions_of_many_batches_are_compacted_to_the_last_of_each_query(broker: Brokers) -> None:
    servers = broker.bootstrap_servers
    client = Client({"bootstrap.servers": servers})
    client.create_topics([{"name": "t", "num_partitions": 1, "replication_factor": -1, "configs": {}}])
    ledger = Ledger({"bootstrap.servers": servers})
    ledger.ensure()
    soon = {"segment.ms": "100", "delete.retention.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    assert soon.keys() <= TOPIC_CONFIGS.keys()
    (answer,) = client.alter_configs("topic", TOPIC, soon, False)
    assert answer["error"] is None
    versions = count()
    for _ in range(BATCHES):
        run(servers, Write(STREAM, "query", next(versions)))
    for _ in range(10):
        run(servers, batch_write(None, None))

    until(
        lambda: len(read_committed(servers, TOPIC, waiting=True)) <= 12, "the topic holds the last decisions only", 120
    )
    assert set(stored_keys(servers)) == {"query"}
    assert len(read_committed(servers, "t")) >= BATCHES + 10
