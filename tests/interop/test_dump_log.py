"""Apache Kafka's own DumpLogSegments reads our files: every codec, indexes, and the records themselves."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.harness.brokers import Brokers
from tests.interop.clients import CODECS, Record, create_topic
from tests.peers.kafka import dump_log

pytestmark = [pytest.mark.peers, pytest.mark.cluster]

RECORDS = [Record(b"key-%d" % n, b"value-%d " % n + b"x" * 400) for n in range(2_000)]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped broker: a topic of each codec, small segments, many index entries."""
    folder = tmp_path_factory.mktemp("dump")
    with Brokers(folder, log_segment_bytes=100_000, log_index_interval_bytes=1_000) as broker:
        for codec in CODECS:
            topic = f"dump-{codec}"
            create_topic(broker.bootstrap_servers, topic)
            produce(broker.bootstrap_servers, topic, codec)
    return broker.data_dir


def produce(servers: str, topic: str, codec: str) -> None:
    """Write RECORDS in batches of 100."""
    producer = Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "batch.num.messages": 100, "linger.ms": 50}
    )
    for record in RECORDS:
        producer.produce(topic, record.value, record.key, 0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("codec", CODECS)
def test_deep_iteration_prints_every_record_of_every_segment(data_dir: Path, codec: str) -> None:
    segments = sorted((data_dir / f"dump-{codec}-0").glob("*.log"))
    printed = dump_log(segments, "--deep-iteration", "--print-data-log")
    payloads = re.findall(r"^\| offset: (\d+) .* key: (\S+) payload: (.*)$", printed, re.MULTILINE)
    wanted = [(str(offset), record.key.decode(), record.value.decode()) for offset, record in enumerate(RECORDS)]
    assert payloads == wanted
    assert set(re.findall(r"compresscodec: (\w+)", printed)) == {codec}
    assert set(re.findall(r"isvalid: (\w+)", printed)) == {"true"}
    assert len(segments) > 1 or codec != "none"


@pytest.mark.parametrize("codec", CODECS)
def test_index_sanity_check_accepts_every_offset_and_time_index(data_dir: Path, codec: str) -> None:
    folder = data_dir / f"dump-{codec}-0"
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    assert indexes
    printed = dump_log(indexes, "--index-sanity-check")
    assert printed.count("passed sanity check") == len(indexes), printed
    assert "Mismatches" not in dump_log(indexes, "--verify-index-only")
