"""Apache Kafka's own DumpLogSegments reads a log with transactions: markers, `.txnindex`, producer snapshots."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.harness.brokers import Brokers
from tests.interop.clients import create_topic, until_transactions_end
from tests.peers.kafka import dump_log

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

TOPIC = "transfers"
TRANSACTIONS = 40
RECORDS = 5


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The partition's directory of a stopped broker: every third transaction aborted, another producer's left open."""
    folder = tmp_path_factory.mktemp("dump-transactions")
    with Brokers(folder, log_segment_bytes=10_000) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        producer = transactional(broker.bootstrap_servers, "teller")
        for number in range(TRANSACTIONS):
            begin(producer)
            if number % 3 == 0:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
        until_transactions_end(broker.bootstrap_servers)
        begin(transactional(broker.bootstrap_servers, "forgetful"))
    return broker.data_dir / f"{TOPIC}-0"


def transactional(servers: str, name: str) -> Producer:
    """A producer that may begin a transaction."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(30)
    return producer


def begin(producer: Producer) -> None:
    """Begin a transaction, with RECORDS in the log."""
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(TOPIC, b"x" * 200, b"%d" % number, 0)
    assert producer.flush(30) == 0


def test_every_abort_marker_has_its_entry_in_the_txnindex_of_its_segment(partition: Path) -> None:
    segments = sorted(partition.glob("*.log"))
    assert len(segments) > 3
    entries = 0
    for segment in segments:
        markers = re.findall(r"^\| offset: (\d+) .* endTxnMarker: ABORT", dump_log([segment], "--print-data-log"), re.M)
        index = segment.with_suffix(".txnindex")
        assert index.exists() == bool(markers), "the file is made with its first entry"
        if markers:
            printed = dump_log([index])
            assert re.findall(r"version: 0 .* lastOffset: (\d+)", printed) == markers, printed
            firsts = re.findall(r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", printed)
            assert all(int(last) - int(first) == RECORDS for first, last, _ in firsts), printed
            assert all(int(stable) == int(last) + 1 for _, last, stable in firsts), printed
            entries += len(markers)
    assert entries == len(range(0, TRANSACTIONS, 3))


def test_the_snapshot_tells_which_transaction_is_open_and_which_coordinator_ended_the_others(partition: Path) -> None:
    printed = dump_log([max(partition.glob("*.snapshot"))])
    listed = re.findall(r"producerId: (\d+) .* currentTxnFirstOffset: OptionalLong(\.empty|\[\d+\])", printed)
    end = TRANSACTIONS * (RECORDS + 1)
    assert {first for _, first in listed} == {".empty", f"[{end}]"}, printed
    assert len({producer for producer, _ in listed}) == 2, printed
