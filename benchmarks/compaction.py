"""How fast a broker compacts, and what it needs for that: one partition, few keys, and a wait until its files are small.

The broker is one of its own, whose cleaner looks every 100 ms. The topic is filled while it keeps everything, then set to
``cleanup.policy=compact``; it is done when what is left fits into one segment and the active one.
"""

import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks.load import create_topic

_MIB = 1024 * 1024
_SEGMENT_BYTES = 16 * _MIB
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.segment.bytes": str(_SEGMENT_BYTES)}
_KEYS = 1_000
_VALUE = b"x" * 1_000
_TOPIC = "compacted"
_QUEUED_MAX = 50_000
_DEADLINE_S = 300
_LOOK_S = 0.02


def fill(bootstrap_servers: str, records: int) -> None:
    """Put `records` records of 1 kB with 1,000 keys into the topic."""
    create_topic(bootstrap_servers, _TOPIC, 1)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50})
    for number in range(records):
        while len(producer) >= _QUEUED_MAX:
            producer.poll(0.01)
        producer.produce(_TOPIC, _VALUE, b"%d" % (number % _KEYS), partition=0)
    if producer.flush(120):
        raise RuntimeError(f"not all records were acknowledged by {bootstrap_servers}")


def compact(bootstrap_servers: str, data_dir: Path) -> tuple[float, float]:
    """Let the topic be compacted; MiB of its files before, and seconds until it is done."""
    before = _size(data_dir)
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, _TOPIC, incremental_configs=entries)
    started = time.perf_counter()
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=60)
    while _size(data_dir) > 2 * _SEGMENT_BYTES:
        if time.perf_counter() - started > _DEADLINE_S:
            raise RuntimeError(f"{bootstrap_servers} did not compact within {_DEADLINE_S} s")
        time.sleep(_LOOK_S)
    return before / _MIB, time.perf_counter() - started


def _size(data_dir: Path) -> int:
    """Bytes of the topic's live segments."""
    return sum(_bytes(file) for file in (data_dir / f"{_TOPIC}-0").glob("*.log"))


def _bytes(file: Path) -> int:
    """Bytes of a file, 0 when it is gone meanwhile."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
