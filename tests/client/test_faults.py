"""Lost connections, restarts and aborted transactions: nothing twice, nothing missing, nothing out of order."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pylog_spark._native import Client, RecordWriter
from pylog_spark.testing import LocalBroker
from tests.client.support import LossyProxy, read, values_batch, values_of, write
from tests.harness.brokers import BOTH, SEVERAL, Brokers
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster

ROWS = 40_000


@pytest.fixture(params=BOTH)
def lossy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], LossyProxy]]:
    """A broker that clients see only through a proxy which drops connections; and settings for them."""
    if SEVERAL:
        pytest.skip("the proxy stands before one broker")
    with LossyProxy(0, bytes_per_connection=300_000) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        config = {"bootstrap.servers": address, "retry.backoff.ms": "5", "batch.size": "20000"}
        if request.param == "pylog":
            with LocalBroker(tmp_path, advertised_listeners=f"PLAINTEXT://{address}") as broker:
                proxy.aim(broker.port)
                yield config, proxy
            return
        from tests.peers.kafka import KafkaBroker

        settings = {"advertised.listeners": f"PLAINTEXT://{address}"}
        with KafkaBroker(tmp_path, settings, heap="512m", quick=True) as kafka:
            proxy.aim(kafka.port)
            yield config, proxy


def numbered(count: int) -> list[bytes]:
    """Values that contain their position."""
    return [b"%08d" % n + b"." * 60 for n in range(count)]


def test_a_writer_that_loses_connections_neither_doubles_nor_reorders(
    lossy: tuple[dict[str, str], LossyProxy],
) -> None:
    config, proxy = lossy
    Client(config).create_topics([{"name": "numbers", "num_partitions": 1}])
    values = numbered(ROWS)
    flushed = write(config, "numbers", *[values_batch(values[at : at + 1000]) for at in range(0, ROWS, 1000)])
    assert proxy.dropped >= 5
    assert flushed["records"] == ROWS
    (offset,) = [found[2] for found in Client(config).list_offsets([("numbers", 0, -1)])]
    assert offset == ROWS
    assert values_of(config, "numbers", 0, ROWS) == values


def test_a_broker_killed_under_a_writer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with Brokers(tmp_path) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "5", "batch.size": "20000"}
        Client(config).create_topics([{"name": "numbers", "num_partitions": 1}])
        values = numbered(ROWS)
        writer = RecordWriter(config, "numbers")
        for at in range(0, ROWS, 1000):
            writer.write(values_batch(values[at : at + 1000]))
            if at in (10_000, 30_000):
                broker.kill()
                # The writer goes on meanwhile, until its buffer is full.
                restart = threading.Thread(target=broker.start)
                restart.start()
            if at in (25_000, ROWS - 1000):
                restart.join()
        assert writer.flush()["records"] == ROWS
        writer.close()
        assert values_of(config, "numbers", 0, ROWS) == values


def test_a_reader_survives_a_restart_of_its_broker(tmp_path: Path) -> None:
    import pyarrow as pa

    from pylog_spark._native import RangeReader

    with Brokers(tmp_path) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers, "max.partition.fetch.bytes": "30000"}
        Client(config).create_topics([{"name": "numbers", "num_partitions": 1}])
        values = numbered(ROWS)
        write({**config, "batch.size": "20000"}, "numbers", values_batch(values))
        reader = RangeReader(config, "numbers", 0, 0, ROWS, ["value"], max_rows=500)
        found: list[bytes] = []
        while not reader.at_end:
            batch = pa.record_batch(reader.next_batch(30_000))
            found += batch["value"].to_pylist()
            if len(found) == 5_000:
                broker.kill()
                broker.start()
        assert found == values


@pytest.mark.peers
def test_read_committed_leaves_out_aborted_transactions_and_read_uncommitted_does_not(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    from confluent_kafka import Producer

    topic = new_topic()
    producer = Producer({"bootstrap.servers": config["bootstrap.servers"], "transactional.id": topic})
    producer.init_transactions()
    for round_number in range(6):
        producer.begin_transaction()
        for n in range(5):
            producer.produce(topic, b"%d-%d" % (round_number, n), partition=0)
        producer.flush()
        if round_number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    # Apache Kafka answers before its markers are written.
    offset, client = 6 * (5 + 1), Client(config)
    ends = [(topic, 0, offset)]
    until(
        lambda: [found[:3] for found in client.list_offsets([(topic, 0, -1)], "read_committed")] == ends, "all markers"
    )
    committed = read({**config, "isolation.level": "read_committed"}, topic, 0, 0, offset, ["value"])
    every = read(config, topic, 0, 0, offset, ["value"])
    assert committed["value"].to_pylist() == [b"%d-%d" % (r, n) for r in (0, 2, 4) for n in range(5)]
    assert every["value"].to_pylist() == [b"%d-%d" % (r, n) for r in range(6) for n in range(5)]
