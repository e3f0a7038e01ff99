"""A compacted topic for others: Kafka's DumpLogSegments takes its files, and a Spark query takes no gap for a loss."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.harness.brokers import Brokers
from tests.harness.waiting import until
from tests.peers.kafka import dump_log

pytestmark = pytest.mark.cluster

TOPIC = "compacted"
RECORDS = 3_000
KEYS = 50
WAIT_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A broker whose topic was compacted; every codec is in it."""
    with Brokers(tmp_path_factory.mktemp("compaction"), log_cleaner_backoff_ms=20) as running:
        config = {"cleanup.policy": "compact", "segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01"}
        config["index.interval.bytes"] = "500"
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 1, config=config)])[TOPIC].result(WAIT_S)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer(
                {"bootstrap.servers": running.bootstrap_servers, "compression.type": codec, "batch.num.messages": 10}
            )
            for n in range(RECORDS):
                value = None if n % 7 == 0 else f"{codec}-{n} {'x' * 40}"
                producer.produce(TOPIC, value, f"key-{n % KEYS}")
            assert producer.flush(WAIT_S) == 0
        checkpoint = running.data_dir / "cleaner-offset-checkpoint"

        def compacted() -> bool:
            """Up to the segment that is written to, which is never cleaned."""
            last = max(int(path.stem) for path in (running.data_dir / f"{TOPIC}-0").glob("*.log"))
            return checkpoint.exists() and int(checkpoint.read_text().split()[-1]) >= max(last, 4 * RECORDS)

        until(compacted, "the topic is compacted", WAIT_S)
        yield running


@pytest.mark.peers
def test_kafkas_tool_takes_cleaned_segments_and_their_indexes(broker: Brokers, tmp_path: Path) -> None:
    # A copy: a running broker would go on joining segments under the tool's feet.
    broker.terminate()
    folder = Path(shutil.copytree(broker.data_dir / f"{TOPIC}-0", tmp_path / f"{TOPIC}-0"))
    broker.start()
    segments = sorted(folder.glob("*.log"))[:-1]
    printed = dump_log(segments, "--deep-iteration")
    assert "isvalid: false" not in printed
    assert "isvalid: true" in printed
    assert "deleteHorizonMs" in printed
    offsets = [int(word.split()[0]) for word in printed.split("| offset: ")[1:]]
    assert offsets == sorted(set(offsets))
    assert len(offsets) < RECORDS
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    checked = dump_log(indexes, "--index-sanity-check")
    assert checked.count("passed sanity check") + checked.count("is empty") == len(indexes), checked
    assert checked.count("passed sanity check") > len(indexes) // 2, checked
    assert "Mismatches" not in dump_log(indexes, "--verify-index-only")


@pytest.mark.long  # tests/reading/test_losses.py
def test_a_spark_query_takes_no_gap_for_a_loss_also_when_the_topic_is_no_longer_compacted(
    broker: Brokers, spark: Any
) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": TOPIC, "failOnDataLoss": "true"}
    expected = {f"key-{n % KEYS}": n for n in range(RECORDS)}

    def check() -> None:
        frame = spark.read.format("pylog").options(**options).load()
        rows = frame.selectExpr("cast(key as string) k", "cast(value as string) v", "offset").collect()
        last = {row.k: row.v for row in sorted(rows, key=lambda row: row.offset)}
        wanted = {key: None if n % 7 == 0 else f"zstd-{n} {'x' * 40}" for key, n in expected.items()}
        assert last == wanted
        assert len(rows) < RECORDS

    check()
    change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    check()
    broker.restart()
    options["kafka.bootstrap.servers"] = broker.bootstrap_servers
    check()
